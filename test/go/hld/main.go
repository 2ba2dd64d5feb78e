// A client of hld's socket as HumanLayer's own in Go is: a connection for requests, with a new JSON
// decoder for each of them, so that whatever comes unasked is lost or in the way; and one for each
// subscription. Nothing but the standard library.
//
//	hld SOCKET FOLDER
//
// Plays a scene in that folder, decides as the first generation of clients did, and prints every
// message as it came: {"calls": [[method, answer]...], "events": [...], "filtered": [...]}.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

const patience = 60 * time.Second

type request struct {
	JSONRPC string      `json:"jsonrpc"`
	Method  string      `json:"method"`
	Params  interface{} `json:"params,omitempty"`
	ID      int64       `json:"id"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
	ID interface{} `json:"id"`
}

type object map[string]interface{}

type seen struct {
	Calls    [][2]string `json:"calls"`
	Events   []string    `json:"events"`
	Filtered []string    `json:"filtered"`
}

func dial(path string) (net.Conn, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(patience))
}

// ---- requests ----

type client struct {
	conn net.Conn
	id   int64
	seen *seen
}

func (c *client) call(method string, params, result interface{}) error {
	c.id++
	if err := json.NewEncoder(c.conn).Encode(request{"2.0", method, params, c.id}); err != nil {
		return err
	}
	var raw json.RawMessage
	if err := json.NewDecoder(c.conn).Decode(&raw); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	c.seen.Calls = append(c.seen.Calls, [2]string{method, string(raw)})
	var answer response
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %s", method, answer.Error.Message)
	}
	if answer.ID != float64(c.id) {
		return fmt.Errorf("%s: id %v, not %d", method, answer.ID, c.id)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

// end says that nothing more is asked; what still comes was never asked for.
func end(conn net.Conn) error {
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	rest, err := io.ReadAll(conn)
	if err == nil && len(strings.TrimSpace(string(rest))) > 0 {
		err = fmt.Errorf("unasked: %s", rest)
	}
	conn.Close()
	return err
}

// ---- events ----

type event struct {
	Type string `json:"type"`
	Data struct {
		NewStatus  string `json:"new_status"`
		Content    string `json:"content"`
		ApprovalID string `json:"approval_id"`
	} `json:"data"`
}

type subscription struct {
	conn    net.Conn
	decoder *json.Decoder
	events  *[]string
}

func subscribe(path string, params object, events *[]string) (*subscription, error) {
	conn, err := dial(path)
	if err != nil {
		return nil, err
	}
	s := &subscription{conn, json.NewDecoder(conn), events}
	if err := json.NewEncoder(conn).Encode(request{"2.0", "Subscribe", params, 1}); err != nil {
		return nil, err
	}
	var answer struct {
		Result struct {
			SubscriptionID string `json:"subscription_id"`
		} `json:"result"`
	}
	if err := json.Unmarshal(s.next(), &answer); err != nil {
		return nil, err
	}
	if answer.Result.SubscriptionID == "" {
		return nil, errors.New("no subscription_id")
	}
	return s, nil
}

func (s *subscription) next() json.RawMessage {
	var raw json.RawMessage
	if err := s.decoder.Decode(&raw); err != nil {
		fail(fmt.Errorf("subscription: %w", err))
	}
	*s.events = append(*s.events, string(raw))
	return raw
}

// until returns the event that fits, when each of the others was heard as well.
func (s *subscription) until(what string, fits ...func(event) bool) event {
	var last event
	for left := len(fits); left > 0; {
		var message struct {
			Result struct {
				Event event `json:"event"`
			} `json:"result"`
		}
		if err := json.Unmarshal(s.next(), &message); err != nil {
			fail(fmt.Errorf("%s: %w", what, err))
		}
		for i, fit := range fits {
			if fit != nil && fit(message.Result.Event) {
				last, fits[i] = message.Result.Event, nil
				left--
			}
		}
	}
	return last
}

func status(name string) func(event) bool {
	return func(e event) bool { return e.Data.NewStatus == name }
}

func kind(name string) func(event) bool {
	return func(e event) bool { return e.Type == name }
}

func said(text string) func(event) bool {
	return func(e event) bool { return e.Data.Content == text }
}

// ---- the scene ----

type launched struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
}

type scene struct {
	*client
	path, folder string
	events       *subscription
}

func (s *scene) decide(session string) {
	var waiting struct {
		Approvals []struct {
			Type         string `json:"type"`
			FunctionCall struct {
				CallID string `json:"call_id"`
			} `json:"function_call"`
		} `json:"approvals"`
	}
	check(s.call("fetchApprovals", object{"session_id": session}, &waiting))
	if len(waiting.Approvals) != 1 {
		fail(fmt.Errorf("%d approvals wait", len(waiting.Approvals)))
	}
	decision := object{"call_id": waiting.Approvals[0].FunctionCall.CallID,
		"type": waiting.Approvals[0].Type, "decision": "approve"}
	check(s.call("sendDecision", decision, nil))
	check(s.call("sendDecision", decision, nil))
}

func (s *scene) first() string {
	query := "session claude-1\nvia hld " + s.path + "\nsay Hello <you> & me\n" +
		"ask Bash {\"command\": \"ls -l\"}\nsay Done"
	var session launched
	check(s.call("launchSession", object{"query": query, "model": "opus", "working_dir": s.folder,
		"max_turns": 3}, &session))
	s.events.until("the question", kind("new_approval"), status("waiting_input"))
	s.decide(session.SessionID)
	s.events.until("its end", status("completed"))
	check(s.call("getConversation", object{"session_id": session.SessionID}, nil))
	check(s.call("getSessionState", object{"session_id": session.SessionID}, nil))
	check(s.call("listSessions", nil, nil))
	return session.SessionID
}

func (s *scene) second(parent string, filtered *[]string) {
	var session launched
	check(s.call("continueSession", object{"session_id": parent,
		"query": "session claude-2\nsay More\nhang"}, &session))
	s.events.until("what it says", said("More"))
	few, err := subscribe(s.path, object{"event_types": []string{"session_status_changed"},
		"run_id": session.RunID}, filtered)
	check(err)
	check(s.call("interruptSession", object{"session_id": session.SessionID}, nil))
	s.events.until("its end", status("interrupted"))
	few.until("its end", status("interrupted"))
	check(end(few.conn))
	check(s.call("getSessionState", object{"session_id": session.SessionID}, nil))
	check(s.call("getConversation", object{"session_id": session.SessionID}, nil))
	check(s.call("fetchApprovals", object{}, nil))
}

func play(path, folder string) *seen {
	out := &seen{}
	conn, err := dial(path)
	check(err)
	s := &scene{client: &client{conn: conn, seen: out}, path: path, folder: folder}
	check(s.call("health", nil, nil))
	s.events, err = subscribe(path, nil, &out.Events)
	check(err)
	// Nothing that is asked there is answered any more.
	check(json.NewEncoder(s.events.conn).Encode(request{"2.0", "health", nil, 2}))
	s.second(s.first(), &out.Filtered)
	check(end(s.events.conn))
	check(end(conn))
	return out
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "hld:", err)
	os.Exit(1)
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func main() {
	if len(os.Args) != 3 {
		fail(errors.New("usage: hld SOCKET FOLDER"))
	}
	out, err := json.Marshal(play(os.Args[1], os.Args[2]))
	check(err)
	fmt.Println(string(out))
}
