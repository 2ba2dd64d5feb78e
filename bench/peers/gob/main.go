// What Go itself does with net/rpc and encoding/gob, for the rows of gob:
//
//	peer_gob serve PATH                            the server of ocg, with nothing behind it
//	peer_gob form METHOD                           the bytes of a call, for the load generator
//	peer_gob call PATH METHOD CONNS FLIGHT SECONDS Go's own client, which measures
//	peer_gob codec SECONDS                         what one message costs encoding/gob
package main

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

type ToolFunction struct {
	Name        string
	Description string
	Parameters  map[string]interface{}
}

type Tool struct {
	Type     string
	Function ToolFunction
}

type ToolCall struct {
	ID       string
	Type     string
	Function struct{ Name, Arguments string }
}

type ToolResult struct {
	ID     string
	Type   string
	Result interface{}
}

type Message struct {
	Role                 string
	Content              string
	ToolCalls            []ToolCall
	ToolExecutionResults []ToolResult
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

var stats = map[string]int{"messages": 150, "memories": 12, "files": 3, "sessions": 2, "tools_calls": 40}

var chat = ChatArgs{Messages: []Message{{Role: "user", Content: "What is my name?"}}}

const said = "You told me that your name is Alice."

type Service struct{}

func (Service) Stats(_ struct{}, reply *StatsReply) error {
	reply.Stats = map[string]int{}
	for key, n := range stats {
		reply.Stats[key] = n
	}
	return nil
}

func (Service) Chat(args ChatArgs, reply *ChatReply) error {
	reply.Content = said
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer_gob:", err)
		os.Exit(1)
	}
}

func serve(path string) {
	check(rpc.RegisterName("RPCService", Service{}))
	listener, err := net.Listen("unix", path)
	check(err)
	rpc.Accept(listener)
}

// ---- the bytes of a call ----

// One of gob's numbers, and how many bytes it takes.
func number(b []byte) (uint64, int) {
	if b[0] < 128 {
		return uint64(b[0]), 1
	}
	n, size := uint64(0), 256-int(b[0])
	for _, c := range b[1 : 1+size] {
		n = n<<8 | uint64(c)
	}
	return n, 1 + size
}

// What defines types, and what is a value.
func split(stream []byte) (definitions, values []byte) {
	for len(stream) > 0 {
		n, size := number(stream)
		id, _ := number(stream[size:])
		end := size + int(n)
		if id&1 == 1 { // negative
			definitions = append(definitions, stream[:end]...)
		} else {
			values = append(values, stream[:end]...)
		}
		stream = stream[end:]
	}
	return
}

func argsOf(method string) interface{} {
	if strings.HasSuffix(method, ".Chat") {
		return chat
	}
	return struct{}{}
}

func replyOf(method string) interface{} {
	if strings.HasSuffix(method, ".Chat") {
		return &ChatReply{}
	}
	return &StatsReply{}
}

// The method, what a connection begins with, and the body of every call. The headers of calls
// have numbers in them and are the generator's.
func form(method string) {
	var stream bytes.Buffer
	enc := gob.NewEncoder(&stream)
	check(enc.Encode(rpc.Request{ServiceMethod: method, Seq: 1}))
	check(enc.Encode(argsOf(method)))
	definitions, _ := split(stream.Bytes())
	stream.Reset()
	check(enc.Encode(argsOf(method)))
	fmt.Printf("%s %x %x\n", method, definitions, stream.Bytes())
}

// ---- Go's own client ----

type measured struct {
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"rate"`
	P50      int64   `json:"p50_ns"`
	P99      int64   `json:"p99_ns"`
}

// Keeps a window of calls in flight, and gives the time that each took.
func window(client *rpc.Client, method string, flight int, until time.Time) []int64 {
	times := []int64{}
	calls := make([]*rpc.Call, flight)
	for time.Now().Before(until) {
		begun := time.Now()
		for i := range calls {
			calls[i] = client.Go(method, argsOf(method), replyOf(method), make(chan *rpc.Call, 1))
		}
		for _, call := range calls {
			<-call.Done
			check(call.Error)
			times = append(times, int64(time.Since(begun)))
		}
	}
	return times
}

func call(path, method string, conns, flight int, seconds float64) {
	var all []int64
	var lock sync.Mutex
	var done sync.WaitGroup
	begun := time.Now()
	until := begun.Add(time.Duration(seconds * 1e9))
	for i := 0; i < conns; i++ {
		client, err := rpc.Dial("unix", path)
		check(err)
		done.Add(1)
		go func() {
			times := window(client, method, flight, until)
			lock.Lock()
			all = append(all, times...)
			lock.Unlock()
			client.Close()
			done.Done()
		}()
	}
	done.Wait()
	wall := time.Since(begun).Seconds()
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	check(json.NewEncoder(os.Stdout).Encode(measured{len(all), wall, float64(len(all)) / wall,
		all[len(all)/2], all[len(all)*99/100]}))
}

// ---- encoding/gob alone ----

// The time of one run, from as many as fill the time.
func each(seconds float64, run func()) float64 {
	for n := 1000; ; n *= 2 {
		begun := time.Now()
		for i := 0; i < n; i++ {
			run()
		}
		if took := time.Since(begun); took.Seconds() >= seconds/2 {
			return float64(took.Nanoseconds()) / float64(n)
		}
	}
}

// Messages as they are on a connection that has been used: types are known already.
type loop struct {
	head, again []byte
	at          int
}

func (l *loop) Read(p []byte) (int, error) {
	from := l.head
	if len(l.head) == 0 {
		from = l.again[l.at:]
	}
	n := copy(p, from)
	if len(l.head) > 0 {
		l.head = l.head[n:]
	} else {
		l.at = (l.at + n) % len(l.again)
	}
	return n, nil
}

func decodes(seconds float64, method string, into func() interface{}) float64 {
	var stream bytes.Buffer
	enc := gob.NewEncoder(&stream)
	put := func() {
		check(enc.Encode(rpc.Request{ServiceMethod: method, Seq: 100000}))
		check(enc.Encode(argsOf(method)))
	}
	put()
	head := append([]byte{}, stream.Bytes()...)
	stream.Reset()
	put()
	dec := gob.NewDecoder(&loop{head: head, again: stream.Bytes()})
	return each(seconds, func() {
		var request rpc.Request
		check(dec.Decode(&request))
		check(dec.Decode(into()))
	})
}

func encodes(seconds float64, method string, reply interface{}) float64 {
	var out bytes.Buffer
	enc := gob.NewEncoder(&out)
	return each(seconds, func() {
		out.Reset()
		check(enc.Encode(rpc.Response{ServiceMethod: method, Seq: 100000}))
		check(enc.Encode(reply))
	})
}

func codec(seconds float64) {
	check(json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"decode Stats": decodes(seconds, "RPCService.Stats", func() interface{} { return &struct{}{} }),
		"decode Chat":  decodes(seconds, "RPCService.Chat", func() interface{} { return &ChatArgs{} }),
		"encode Stats": encodes(seconds, "RPCService.Stats", &StatsReply{stats}),
		"encode Chat":  encodes(seconds, "RPCService.Chat", &ChatReply{Content: said}),
	}))
}

func count(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n
}

func main() {
	args := os.Args[1:]
	seconds := 0.0
	if len(args) > 1 {
		seconds, _ = strconv.ParseFloat(args[len(args)-1], 64)
	}
	switch {
	case len(args) == 2 && args[0] == "serve":
		serve(args[1])
	case len(args) == 2 && args[0] == "form":
		form(args[1])
	case len(args) == 6 && args[0] == "call":
		call(args[1], args[2], count(args[3]), count(args[4]), seconds)
	case len(args) == 2 && args[0] == "codec":
		codec(seconds)
	default:
		fmt.Fprintln(os.Stderr, "usage: peer_gob serve PATH | form METHOD | codec SECONDS |\n"+
			"  call PATH METHOD CONNECTIONS INFLIGHT SECONDS")
		os.Exit(2)
	}
}
