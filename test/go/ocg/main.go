// A client of the ocg dialect with nothing but Go's standard library: every method under both
// names, side by side, tools and what they give back, and all that can be wrong. What it prints
// is the same whoever answers, koined or Go's own server (../ocgserver).
//
//	ocg SOCKET            all of it
//	ocg SOCKET many N     N calls at once on one connection
//	ocg SOCKET chat TEXT  one question, and its answer
//	ocg SOCKET beside     short questions while two long ones run, on one connection
//	ocg SOCKET errors     what is answered where something is not initialized
package main

import (
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math"
	"net/rpc"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
)

type Any = interface{}

type Message struct {
	Role                 string
	Content              string
	ToolCalls            []ToolCall
	ToolExecutionResults []ToolResult
}

type ToolCall struct {
	ID       string
	Type     string
	Function struct {
		Name      string
		Arguments string
	}
}

type ToolResult struct {
	ID     string
	Type   string
	Result Any
}

type Tool struct {
	Type     string
	Function ToolFunction
}

type ToolFunction struct {
	Name, Description string
	Parameters        map[string]Any
}

type ChatArgs struct {
	Messages []Message
	Tools    []Tool
}

type ChatReply struct {
	Content string
	Tools   []ToolCall
}

type StatsReply struct{ Stats map[string]int }

type MemorySearchArgs struct {
	Query, Category string
	Limit           int
	MinScore        float64
}

type MemoryGetArgs struct{ Path string }

type MemoryStoreArgs struct {
	Text, Category string
	Importance     float64
}

type ToolResultReply struct{ Result string }

type PulseArgs struct {
	Action, Title, Content string
	Priority               int
	Channel                string
	Limit                  int
}

type PulseReply struct {
	Result  string
	EventID int64
	Status  string
}

// What a program of another version, or with a mistake, would send.
type LimitText struct{ Query, Limit string }
type LimitFloat struct {
	Query string
	Limit float64
}
type Stranger struct{ Elsewhere int }
type Newer struct {
	Query  string
	Limit  int
	Budget map[string][]float64
	Inner  struct{ Deep []Message }
}

func fail(format string, args ...Any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func dial() *rpc.Client {
	c, err := rpc.Dial("unix", os.Args[1])
	check(err)
	return c
}

func call(c *rpc.Client, method string, args, reply Any) {
	if err := c.Call(method, args, reply); err != nil {
		fail("%s: %v", method, err)
	}
}

// ---- chat ----

func tool(name string) Tool {
	return Tool{"function", ToolFunction{name, "does " + name, map[string]Any{"type": "object",
		"properties": map[string]Any{"text": map[string]Any{"type": "string",
			"enum": []Any{"a", 1, 2.5, true}}}}}}
}

// Everything that an interface may hold.
var kinds = []Any{"plain text", "", 7, int8(-8), int64(math.MinInt64), uint16(9), 2.5,
	float32(0.5), true, false, nil, []string{"a", "b"}, []float64{1.5, -2}, []int{3},
	[]Any{"x", 1, nil, []Any{false}}, map[string]Any{"k": []Any{1, "v"}},
	map[string]Any{"error": "tool not found: x"}}

func show(service string, reply ChatReply) {
	fmt.Printf("%s.Chat %q\n", service, reply.Content)
	for _, t := range reply.Tools {
		fmt.Printf("%s.Chat wants %s %s %s %s\n", service, t.ID, t.Type, t.Function.Name,
			t.Function.Arguments)
	}
}

func chat(c *rpc.Client, service string, args ChatArgs) ChatReply {
	var reply ChatReply
	call(c, service+".Chat", args, &reply)
	show(service, reply)
	return reply
}

func question(text string) ChatArgs {
	return ChatArgs{Messages: []Message{{Role: "user", Content: text}}}
}

func chats(c *rpc.Client, service string) {
	chat(c, service, question("Hello"))
	chat(c, service, ChatArgs{Messages: []Message{
		{Role: "system", Content: "Be brief."}, {Role: "user", Content: "One"},
		{Role: "assistant", Content: "Two"}, {Role: "user", Content: "Thr\u00e9e"}}})
	chat(c, service, question("bad \xff\xfe bytes"))

	// The flow: it wants tools, gets what they gave, wants one more, and answers.
	args := question("use them")
	for i := range kinds {
		args.Tools = append(args.Tools, tool("tool"+strconv.Itoa(i)))
	}
	reply := chat(c, service, args)
	results := []ToolResult{}
	for i, t := range reply.Tools {
		results = append(results, ToolResult{t.ID, "function", kinds[i]})
	}
	args.Messages = append(args.Messages,
		Message{Role: "assistant", Content: reply.Content, ToolCalls: reply.Tools},
		Message{Role: "tool", ToolExecutionResults: results})
	chat(c, service, args)
	results[0].Result = "more"
	reply = chat(c, service, args)
	args.Messages = append(args.Messages,
		Message{Role: "assistant", ToolCalls: reply.Tools,
			ToolExecutionResults: []ToolResult{{reply.Tools[0].ID, "function", "at last"}}})
	chat(c, service, args)
}

// ---- memory, numbers, pulses ----

func memory(c *rpc.Client, service, method string, args Any) map[string]Any {
	var reply ToolResultReply
	var found map[string]Any
	call(c, service+"."+method, args, &reply)
	if err := json.Unmarshal([]byte(reply.Result), &found); err != nil {
		fail("%s: %v in %q", method, err, reply.Result)
	}
	return found
}

func memories(c *rpc.Client, service, text string) {
	stored := memory(c, service, "MemoryStore", MemoryStoreArgs{Text: text, Category: "fact"})
	id, _ := stored["id"].(string)
	fmt.Println(service, "stored", stored["action"], len(id) > 0, strconv.Quote(stored["result"].(string)))
	again := memory(c, service, "MemoryStore", MemoryStoreArgs{Text: " " + text + "\n"})
	fmt.Println(service, "again", again["action"], again["id"] == id, again["result"])
	found := memory(c, service, "MemorySearch", MemorySearchArgs{Query: text, Limit: math.MaxInt64})
	words := strings.SplitN(found["result"].(string), "\n", 2)[0]
	fmt.Println(service, "found", found["count"], words)
	for _, item := range found["items"].([]Any) {
		m := item.(map[string]Any)
		fmt.Println(service, "item", m["id"] == id, m["text"], m["category"], m["importance"], m["source"])
	}
	none := memory(c, service, "MemorySearch", MemorySearchArgs{"zzqx", "decision", -1, 0.9})
	fmt.Println(service, "none", none)
	other := memory(c, service, "MemorySearch", MemorySearchArgs{Query: text, Category: "decision"})
	fmt.Println(service, "of another category", other["count"])
	got := memory(c, service, "MemoryGet", MemoryGetArgs{id})
	fmt.Println(service, "got", got["id"] == id, got["text"], got["category"], got["importance"], got["source"],
		len(got["createdAt"].(string)), len(got["updatedAt"].(string)))
}

func keys(m map[string]Any) []string {
	out := []string{}
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func numbers(c *rpc.Client, service string) {
	var stats StatsReply
	call(c, service+".Stats", struct{}{}, &stats)
	names := []string{}
	for k, n := range stats.Stats {
		if n < 0 {
			fail("%s is %d", k, n)
		}
		names = append(names, k)
	}
	sort.Strings(names)
	fmt.Println(service, "stats", names, stats.Stats["memories"] > 0)
}

func pulses(c *rpc.Client, service string) {
	var added, next, status PulseReply
	call(c, service+".PulseAdd", PulseArgs{Action: "remind", Title: "tea", Priority: 9}, &added)
	call(c, service+".PulseAdd", PulseArgs{Title: "more tea", Channel: "here"}, &next)
	fmt.Println(service, "pulse", added.Result, added.EventID > 0, next.EventID > added.EventID, added.Status)
	call(c, service+".PulseStatus", PulseArgs{}, &status)
	var found map[string]Any
	check(json.Unmarshal([]byte(status.Result), &found))
	fmt.Println(service, "pulses", keys(found), found["is_processing"], found["running"])
}

// ---- what is wrong ----

func errors(c *rpc.Client, service string) {
	for _, wrong := range []struct {
		method string
		args   Any
	}{
		{".MemorySearch", MemorySearchArgs{}},
		{".MemoryGet", MemoryGetArgs{}},
		{".MemoryStore", MemoryStoreArgs{Category: "fact"}},
		{".MemorySearch", LimitText{"q", "5"}},
		{".MemorySearch", LimitFloat{"q", 5}},
		{".MemorySearch", Stranger{1}},
		{".MemorySearch", "text"},
		{".MemoryGet", []string{"a"}},
		{".Chat", Stranger{1}},
		{".Nope", Newer{Query: "q"}},
		{".", struct{}{}},
		{"er.Stats", struct{}{}},
	} {
		var reply ToolResultReply
		err := c.Call(service+wrong.method, wrong.args, &reply)
		fmt.Println(service+wrong.method, "error", err)
	}
	for _, name := range []string{"Stats", "", "a.b.c", "Nope.Stats",
		"Agent.No\x00pe", "\x00.Chat", "no dot\x00", "Agent." + strings.Repeat("x", 5000)} {
		fmt.Println(c.Call(name, struct{}{}, &StatsReply{}))
	}
	var newer ToolResultReply
	call(c, service+".MemorySearch", &Newer{Query: "zzqx", Limit: 3,
		Budget: map[string][]float64{"x": {1}}}, &newer)
	fmt.Println(service, "newer", strings.Contains(newer.Result, "No relevant"))
}

// ---- many ----

func many(n int) {
	c := dial()
	defer c.Close()
	calls := []*rpc.Call{}
	for i := 0; i < n; i++ {
		switch i % 3 {
		case 0:
			calls = append(calls, c.Go("Agent.Stats", struct{}{}, &StatsReply{}, nil))
		case 1:
			calls = append(calls, c.Go("RPCService.MemorySearch", MemorySearchArgs{Query: "zzqx"},
				&ToolResultReply{}, nil))
		default:
			calls = append(calls, c.Go("Agent.MemorySearch", MemorySearchArgs{}, &ToolResultReply{}, nil))
		}
	}
	said := map[string]int{}
	for i, call := range calls {
		<-call.Done
		switch reply := call.Reply.(type) {
		case *StatsReply:
			said[fmt.Sprint(i%3, call.Error, len(reply.Stats))]++
		case *ToolResultReply:
			said[fmt.Sprint(i%3, call.Error, reply.Result)]++
		}
	}
	for _, line := range sortedCounts(said) {
		fmt.Println(line)
	}
}

func beside() {
	c := dial()
	slow := []*rpc.Call{}
	for _, text := range []string{"slow 1", "slow 2"} {
		slow = append(slow, c.Go("Agent.Chat", question(text), &ChatReply{}, nil))
	}
	for i := 0; i < 3; i++ {
		chat(c, "Agent", question("quick"))
	}
	for _, call := range slow {
		<-call.Done
		check(call.Error)
		show("Agent", *call.Reply.(*ChatReply))
	}
}

func sortedCounts(said map[string]int) []string {
	out := []string{}
	for k, n := range said {
		out = append(out, fmt.Sprint(k, " x ", n))
	}
	sort.Strings(out)
	return out
}

// Several clients, each with several goroutines, at once.
func crowd() {
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		c := dial()
		for k := 0; k < 8; k++ {
			all.Add(1)
			go func(text string) {
				defer all.Done()
				var reply ChatReply
				var stats StatsReply
				call(c, "Agent.Stats", struct{}{}, &stats)
				call(c, "Agent.Chat", ChatArgs{Messages: []Message{{Role: "user", Content: text}}}, &reply)
				if reply.Content != "echo 1: "+text {
					fail("%q was answered with %q", text, reply.Content)
				}
			}(fmt.Sprintf("client %d call %d", i, k))
		}
		defer c.Close()
	}
	all.Wait()
	fmt.Println("crowd ok")
}

func everything() {
	c := dial()
	chats(c, "RPCService")
	chats(c, "Agent")
	memories(c, "RPCService", "Kangaroos hop over the fence, and a "+strings.Repeat("very ", 10)+"long way")
	memories(c, "Agent", "Penguins slide")
	for _, service := range []string{"RPCService", "Agent"} {
		numbers(c, service)
		pulses(c, service)
		errors(c, service)
	}
	check(c.Close())
	crowd()
	many(1000)
}

func uninitialized() {
	c := dial()
	defer c.Close()
	for _, service := range []string{"RPCService", "Agent"} {
		for _, wanted := range []struct {
			method string
			args   Any
		}{
			{".Chat", ChatArgs{Messages: []Message{{Role: "user", Content: "Hello"}}}},
			{".MemorySearch", MemorySearchArgs{Query: "q"}},
			{".MemoryGet", MemoryGetArgs{"x"}},
			{".MemoryStore", MemoryStoreArgs{Text: "t"}},
			{".PulseAdd", PulseArgs{}},
			{".PulseStatus", PulseArgs{}},
			{".Stats", struct{}{}},
		} {
			fmt.Println(service+wanted.method, c.Call(service+wanted.method, wanted.args, nil))
		}
	}
}

func main() {
	gob.Register(map[string]Any{})
	gob.Register([]Any{})
	what := ""
	if len(os.Args) > 2 {
		what = os.Args[2]
	}
	switch what {
	case "":
		everything()
	case "many":
		n, err := strconv.Atoi(os.Args[3])
		check(err)
		many(n)
	case "chat":
		chat(dial(), "Agent", question(os.Args[3]))
	case "beside":
		beside()
	case "errors":
		uninitialized()
	default:
		fail("%s?", what)
	}
}
