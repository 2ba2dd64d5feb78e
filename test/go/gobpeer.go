// The other side of test_gob.py: Go's own encoding/gob and net/rpc, nothing else.
//
//	gobpeer read      values from stdin, which gob_peer has written, against what they must be
//	gobpeer write F   random values to stdout, and the same as JSON lines to the file F
//	gobpeer client    calls over stdin and stdout
//	gobpeer server    answers over stdin and stdout
package main

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/rpc"
	"os"
	"reflect"
	"sort"
)

type Any = interface{}

type Inner struct {
	Name string
	N    int
}

// What gob_peer writes, field by field.
type Everything struct {
	Bool    bool
	Int     int64
	Uint    uint64
	Float   float64
	Complex complex128
	String  string
	Bytes   []byte
	List    []Inner
	Array   [3]int
	Map     map[string]int
	ByInt   map[int]string
	Inner   Inner
	Any     Any
	Anys    []Any
	Params  map[string]Any
}

// The same as an older program knows it: the rest is skipped.
type Few struct {
	String string
	Inner  Inner
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

func same(what string, got, want Any) {
	if !reflect.DeepEqual(got, want) {
		fail("%s: got %#v, want %#v", what, got, want)
	}
}

func full() Everything {
	return Everything{
		Bool: true, Int: math.MinInt64, Uint: math.MaxUint64, Float: -0.1, Complex: complex(1, -2),
		String: "gr\u00fc\u00dfe\x00\xff", Bytes: []byte{0, 1, 255},
		List: []Inner{{"a", 1}, {}, {"c", -3}}, Array: [3]int{0, 128, -129},
		Map: map[string]int{"": 0, "x": 300}, ByInt: map[int]string{-1: "neg", 0: ""},
		Inner:  Inner{"in", 64},
		Any:    map[string]Any{"k": []Any{"one", 2, 3.5, true, nil, map[string]Any{}}},
		Anys:   []Any{nil, false, 0, "", []Any(nil), []Any{[]Any{"deep"}}},
		Params: map[string]Any{"n": nil, "s": "text", "m": map[string]Any{"x": 1.5}},
	}
}

func read() {
	dec := gob.NewDecoder(os.Stdin)
	for round := 0; round < 2; round++ {
		var everything, empty Everything
		check(dec.Decode(&everything))
		same("everything", everything, full())
		check(dec.Decode(&empty))
		same("nothing", empty, Everything{})
		var few Few
		check(dec.Decode(&few))
		same("few", few, Few{full().String, full().Inner})
		check(dec.Decode(nil))
		var n int16
		check(dec.Decode(&n))
		same("int", n, int16(-129))
		var s string
		check(dec.Decode(&s))
		same("string", s, "")
		var list []string
		check(dec.Decode(&list))
		same("strings", list, []string{"", "x"})
	}
	same("end", dec.Decode(nil), io.EOF)
	fmt.Println("ok")
}

type Raw []byte

func (r Raw) MarshalJSON() ([]byte, error) { return json.Marshal(string(r)) }

type Tree struct {
	Word string
	Kids []*Tree
}

type Random struct {
	B  bool
	I8 int8
	I  int64
	U  uint64
	F  float64
	G  float32
	S  string
	R  Raw
	A  [2]uint16
	L  [][]string
	M  map[string][]int
	K  map[int32]bool
	T  *Tree
	X  Any
	Y  []Any
	Z  map[string]Any
}

func text(r *rand.Rand) string {
	b := make([]byte, r.Intn(200))
	for i := range b {
		b[i] = byte('a' + r.Intn(26))
	}
	return string(b)
}

func tree(r *rand.Rand, depth int) *Tree {
	t := &Tree{Word: text(r)}
	for i := r.Intn(3); i > 0 && depth > 0; i-- {
		t.Kids = append(t.Kids, tree(r, depth-1))
	}
	return t
}

func anything(r *rand.Rand, depth int) Any {
	switch n := r.Intn(12); {
	case n == 0:
		return nil
	case n == 1:
		return text(r)
	case n == 2:
		return int(r.Uint64())
	case n == 3:
		return uint16(r.Uint32())
	case n == 4:
		return r.NormFloat64()
	case n == 5:
		return r.Intn(2) == 0
	case n == 6:
		return []string{text(r), ""}
	case n == 7:
		return []int32{1, -2}
	case depth == 0:
		return int8(1)
	case n < 10:
		return anythings(r, depth-1)
	default:
		return anymap(r, depth-1)
	}
}

func anythings(r *rand.Rand, depth int) []Any {
	list := []Any{}
	for i := r.Intn(4); i > 0; i-- {
		list = append(list, anything(r, depth))
	}
	return list
}

func anymap(r *rand.Rand, depth int) map[string]Any {
	m := map[string]Any{}
	for i := r.Intn(4); i > 0; i-- {
		m[text(r)] = anything(r, depth)
	}
	return m
}

func random(r *rand.Rand) Random {
	v := Random{B: r.Intn(2) == 0, I8: int8(r.Uint32()), I: int64(r.Uint64() >> uint(r.Intn(64))),
		U: r.Uint64() >> uint(r.Intn(64)), F: r.ExpFloat64() * math.Pow(10, float64(r.Intn(600)-300)),
		G: float32(r.Intn(2000)-1000) / 4, S: text(r), R: Raw(text(r)), A: [2]uint16{0, uint16(r.Uint32())},
		X: anything(r, 3), Y: anythings(r, 4), Z: anymap(r, 4)}
	for i := r.Intn(3); i > 0; i-- {
		v.L = append(v.L, []string{text(r), text(r)}[:r.Intn(3)])
	}
	if r.Intn(2) == 0 {
		v.M = map[string][]int{text(r): {1, -1}, "": nil}
		v.K = map[int32]bool{-7: true, int32(r.Uint32()): false}
		v.T = tree(r, 4)
	}
	return v
}

func write(path string) {
	file, err := os.Create(path)
	check(err)
	enc, lines := gob.NewEncoder(os.Stdout), json.NewEncoder(file)
	r := rand.New(rand.NewSource(7))
	for i := 0; i < 200; i++ {
		var v Any = random(r)
		switch i % 5 {
		case 1:
			v = anymap(r, 5)
		case 2:
			v = []map[string]Tree{{"x": *tree(r, 2)}}
		}
		check(enc.Encode(v))
		check(lines.Encode(v))
	}
	check(file.Close())
}

// stdio is a connection.
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return os.Stdout.Close() }

type SearchArgs struct {
	Query string
	Limit int
}

type BadArgs struct{ Limit string }

type OtherArgs struct{ Else int }

type Reply struct {
	Result string
	Stats  map[string]int
}

// What the client of each language does, and what it is told.
var calls = []struct {
	method string
	args   Any
	say    string
}{
	{"Agent.Search", SearchArgs{"q", 5}, "q 5 map[limit:5]"},
	{"Agent.Search", BadArgs{"5"}, "gob: wrong type (int) for received field BadArgs.Limit"},
	{"Agent.Search", OtherArgs{1}, "gob: type mismatch: no fields matched compiling decoder for SearchArgs"},
	{"Agent.Search", "text", "gob: type mismatch in decoder: want struct type main.SearchArgs; got non-struct"},
	{"Agent.Nope", full(), "rpc: can't find method Agent.Nope"},
	{"Nope.Search", SearchArgs{}, "rpc: can't find service Nope.Search"},
	{"Search", SearchArgs{}, "rpc: service/method request ill-formed: Search"},
	{"Agent.Search", SearchArgs{"", 0}, "query is required"},
	{"Agent.Search", &SearchArgs{"again", -1}, "again -1 map[limit:-1]"},
}

func client() {
	c := rpc.NewClient(stdio{})
	var all []*rpc.Call
	for _, call := range calls {
		all = append(all, c.Go(call.method, call.args, &Reply{}, nil))
	}
	for i, call := range all {
		<-call.Done
		reply := call.Reply.(*Reply)
		said := fmt.Sprintf("%s %v", reply.Result, reply.Stats)
		if call.Error != nil {
			said = call.Error.Error()
		}
		same(calls[i].method, said, calls[i].say)
	}
	many := []*rpc.Call{}
	for i := 0; i < 1000; i++ {
		many = append(many, c.Go("Agent.Search", SearchArgs{"n", i}, &Reply{}, nil))
	}
	for i, call := range many {
		<-call.Done
		check(call.Error)
		same("many", call.Reply.(*Reply).Stats["limit"], i)
	}
	fmt.Fprintln(os.Stderr, "ok")
	check(c.Close())
}

type Agent struct{}

func (Agent) Search(args SearchArgs, reply *Reply) error {
	if args.Query == "" {
		return errors.New("query is required")
	}
	reply.Result = fmt.Sprintf("%s %d", args.Query, args.Limit)
	reply.Stats = map[string]int{"limit": args.Limit}
	return nil
}

// Echo says what it was given, with every kind of value in it.
func (Agent) Echo(args Everything, reply *Everything) error {
	keys := []string{}
	for key := range args.Params {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	*reply = args
	reply.String = fmt.Sprint(keys)
	return nil
}

func main() {
	gob.Register(map[string]Any{})
	gob.Register([]Any{})
	switch os.Args[1] {
	case "read":
		read()
	case "write":
		write(os.Args[2])
	case "client":
		client()
	case "server":
		check(rpc.Register(Agent{}))
		rpc.ServeConn(stdio{})
	}
}
