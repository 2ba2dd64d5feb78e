// The server of test_call_gob.py: Go's own net/rpc on the Unix socket that is named, until it
// is killed. It prints a line when it listens.
package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"time"
)

type Any = interface{}

type Arith struct{}

type Pair struct{ A, B int }

type Quotient struct{ Quo, Rem int }

func (Arith) Double(n int, reply *int) error {
	*reply = 2 * n
	return nil
}

func (Arith) Half(n uint8, reply *float64) error {
	*reply = float64(n) / 2
	return nil
}

func (Arith) Sum(list []float64, reply *float64) error {
	for _, n := range list {
		*reply += n
	}
	return nil
}

func (Arith) Divide(p Pair, reply *Quotient) error {
	if p.B == 0 {
		return errors.New("divide by zero")
	}
	*reply = Quotient{p.A / p.B, p.A % p.B}
	return nil
}

type Inner struct {
	Name string
	Tags []string
	Deep *Inner
}

type Thing struct {
	Text   string
	N      int64
	U      uint32
	F      float64
	Yes    bool
	Bytes  []byte
	List   []Inner
	Mixed  []Any
	Counts map[string]int
	Free   map[string]Any
	Any    Any
	When   time.Time
}

type Things struct{}

// Go says how it understood what it was given.
func (Things) Show(t Thing, reply *string) error {
	*reply = fmt.Sprintf("%+v", t)
	return nil
}

func (Things) Echo(t Thing, reply *Thing) error {
	*reply = t
	return nil
}

func (Things) When(_ struct{}, reply *Thing) error {
	reply.When = time.Unix(0, 0).UTC()
	return nil
}

// Gate answers calls in the other order: Pass waits until Open was called with its number.
type Gate struct{ open [8]chan bool }

func (g *Gate) Pass(n int, reply *int) error {
	<-g.open[n]
	*reply = n
	return nil
}

func (g *Gate) Open(n int, reply *bool) error {
	close(g.open[n])
	*reply = true
	return nil
}

func main() {
	gate := &Gate{}
	for i := range gate.open {
		gate.open[i] = make(chan bool)
	}
	gob.Register(map[string]Any{})
	gob.Register([]Any{})
	for _, service := range []Any{Arith{}, Things{}, gate} {
		if err := rpc.Register(service); err != nil {
			panic(err)
		}
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	rpc.Accept(listener)
}
