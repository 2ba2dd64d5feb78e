// The same methods on Go's own net/rpc, with the original's types and words, and a model that
// says what test_ocg.py's scripted one does: what ../ocg prints must not tell who answered.
//
//	ocgserver SOCKET
package main

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
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

type entry struct {
	ID         string  `json:"id"`
	Text       string  `json:"text"`
	Category   string  `json:"category"`
	Importance float64 `json:"importance"`
	Source     string  `json:"source"`
	CreatedAt  string  `json:"createdAt"`
	UpdatedAt  string  `json:"updatedAt"`
}

type found struct {
	Query  string  `json:"query"`
	Count  int     `json:"count"`
	Items  []entry `json:"items,omitempty"`
	Result string  `json:"result"`
}

type Service struct {
	lock     sync.Mutex
	memories []entry
	events   int64
}

func text(v Any) string {
	if s, ok := v.(string); ok {
		return s
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func want(id, name, arguments string) ToolCall {
	t := ToolCall{ID: id, Type: "function"}
	t.Function.Name = name
	t.Function.Arguments = arguments
	return t
}

// The model's rule, over what a provider would be sent.
func (s *Service) Chat(args ChatArgs, reply *ChatReply) error {
	said, n := "", 0
	var results []ToolResult
	for _, m := range args.Messages {
		switch {
		case m.Role == "system":
			continue
		case m.Role == "tool":
			results = append(results, m.ToolExecutionResults...)
			n += len(m.ToolExecutionResults)
			continue
		}
		results = m.ToolExecutionResults
		n += 1 + len(results)
		if m.Role == "user" {
			said = strings.ToValidUTF8(strings.ReplaceAll(m.Content, "\xff", "\ufffd"), "\ufffd")
		}
	}
	switch {
	case len(results) > 0 && text(results[0].Result) == "more":
		reply.Tools = []ToolCall{want("call_more", args.Tools[0].Function.Name, `{"again":true}`)}
	case len(results) > 0:
		words := []string{}
		for _, r := range results {
			words = append(words, r.ID+"="+text(r.Result))
		}
		reply.Content = "results: " + strings.Join(words, "; ")
	case len(args.Tools) > 0:
		reply.Content = "a moment"
		for i, t := range args.Tools {
			reply.Tools = append(reply.Tools, want(fmt.Sprint("call_", i), t.Function.Name, `{"of":"`+said+`"}`))
		}
	default:
		reply.Content = fmt.Sprintf("echo %d: %s", n, said)
	}
	return nil
}

func (s *Service) Stats(_ struct{}, reply *StatsReply) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	reply.Stats = map[string]int{"sessions": 0, "messages": 0, "tools_calls": 0,
		"memories": len(s.memories), "files": 0}
	return nil
}

func answer(reply *ToolResultReply, v Any) error {
	out, err := json.Marshal(v)
	reply.Result = string(out)
	return err
}

func (s *Service) MemorySearch(args MemorySearchArgs, reply *ToolResultReply) error {
	if args.Query == "" {
		return errors.New("query is required")
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	items := []entry{}
	for _, m := range s.memories {
		if strings.Contains(m.Text, args.Query) && (args.Category == "" || args.Category == m.Category) {
			items = append(items, m)
		}
	}
	found := found{args.Query, len(items), items, "No relevant memories found."}
	if len(items) > 0 {
		found.Result = fmt.Sprintf("Found %d related memories (similarity):\n\n", len(items))
	}
	return answer(reply, found)
}

func (s *Service) MemoryGet(args MemoryGetArgs, reply *ToolResultReply) error {
	if args.Path == "" {
		return errors.New("path is required")
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, m := range s.memories {
		if m.ID == args.Path {
			return answer(reply, m)
		}
	}
	return errors.New("no memory '" + args.Path + "'")
}

func (s *Service) MemoryStore(args MemoryStoreArgs, reply *ToolResultReply) error {
	if args.Text == "" {
		return errors.New("text is required")
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, m := range s.memories {
		if strings.TrimSpace(m.Text) == strings.TrimSpace(args.Text) {
			return answer(reply, map[string]Any{"action": "duplicate", "id": m.ID,
				"result": "Similar memory already exists"})
		}
	}
	words := args.Text
	if len(words) > 50 {
		words = words[:50] + "...\n(content truncated)"
	}
	id := fmt.Sprint("memory-", len(s.memories))
	s.memories = append(s.memories, entry{id, args.Text, args.Category, 0.7, "manual",
		"2006-01-02 15:04:05", "2006-01-02 15:04:05"})
	return answer(reply, map[string]Any{"action": "created", "id": id, "result": "Stored: " + words})
}

func (s *Service) PulseAdd(args PulseArgs, reply *PulseReply) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.events++
	*reply = PulseReply{"Event added successfully", s.events, "pending"}
	return nil
}

func (s *Service) PulseStatus(args PulseArgs, reply *PulseReply) error {
	out, err := json.Marshal(map[string]Any{"config": map[string]Any{}, "current_event": nil,
		"event_counts": map[string]Any{}, "is_processing": false, "running": true})
	reply.Result = string(out)
	return err
}

func main() {
	gob.Register(map[string]Any{})
	gob.Register([]Any{})
	s := &Service{}
	rpc.RegisterName("RPCService", s)
	rpc.RegisterName("Agent", s)
	l, err := net.Listen("unix", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	rpc.Accept(l)
}
