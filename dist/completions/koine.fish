# Completion in fish, for koine and koined. The programs print the candidates:
# NAME __complete fish WORD... prints how to continue, then candidates with a tab and a description.

function __koine_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l lines ($words[1] __complete fish $words[2..] (string unescape -- "$last"; or echo) 2>/dev/null)
    set -q lines[1]; or return 0
    # What a path is put behind: "--config=". fish completes paths where it knows nothing better.
    set -l before (string match -r -- '^--[^=]*=' "$last")
    set -l path (string replace -r -- '^--[^=]*=' '' "$last")
    set -l found
    switch $lines[1]
        case files
            set found (complete -C "__koine_no_command $path")
        case folders
            set found (complete -C "__koine_no_command $path" | string match '*/')
    end
    for one in $found
        printf '%s\n' "$before$one"
    end
    printf '%s\n' $lines[2..]
end

for program in koine koined
    complete -c $program -e
    complete -c $program -k -f -a '(__koine_complete)'
end
