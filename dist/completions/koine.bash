# Completion in bash, for koine and koined. The programs print the candidates:
# NAME __complete bash WORD... prints how to continue, then candidates with a tab and a description.
# The candidates come quoted; nothing here is evaluated.

_koine() {
	local word rest piece line value breaks width=0 i
	local -a words=() lines=() values=() said=()
	local IFS=$' \t\n'

	# bash has cut the line at = and :, which belong to words of ours; and the last word
	# ends at the cursor.
	rest=${COMP_LINE:0:COMP_POINT}
	for ((i = 0; i <= COMP_CWORD; i++)); do
		piece=${rest%%[! $'\t']*}
		rest=${rest#"$piece"}
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$rest
		rest=${rest#"$word"}
		word=${word//[\\\"\']/}
		if [[ -n $piece || $i == 0 ]]; then
			words+=("$word")
		else
			words[${#words[@]} - 1]+=$word
		fi
	done

	mapfile -t lines < <("${words[0]/#\~/$HOME}" __complete bash "${words[@]:1}" 2>/dev/null)
	case ${lines[0]-} in
	files) compopt -o default ;;
	folders) compopt -o plusdirs ;;
	open) compopt -o nospace ;;
	esac

	# Only what follows the last = or : is replaced, where bash cuts there. Neither is ever quoted.
	word=${words[${#words[@]} - 1]}
	breaks=${COMP_WORDBREAKS//[!=:]/}
	breaks=${breaks:+${word//[!$breaks]/}}
	for line in "${lines[@]:1}"; do
		value=${line%%$'\t'*}
		said+=("${line:${#value} + 1}")
		for ((i = 0; i < ${#breaks}; i++)); do
			value=${value#*[=:]}
		done
		values+=("$value")
		((${#value} <= width)) || width=${#value}
	done
	COMPREPLY=("${values[@]}")

	# Descriptions where bash only lists: a row for each. With one candidate, or where they are
	# put on the line in turn, they would end up there.
	[[ ${COMP_TYPE-} == @(63|33|64) ]] && ((${#values[@]} > 1)) || return 0
	for i in "${!values[@]}"; do
		printf -v line '%-*s  %s' "$width" "${values[i]}" "${said[i]}"
		printf -v line '%-*s' $((${COLUMNS:-80} / 2 + 1)) "${line:0:${COLUMNS:-80} - 1}"
		COMPREPLY[i]=$line
	done
}

# Before 4.4 bash always sorts.
complete -o nosort -F _koine koine koined 2>/dev/null || complete -F _koine koine koined
