package main

import (
	"context"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/gateway/admin"
)

func (b *board) Receivers() []admin.Receiver {
	return []admin.Receiver{
		{Name: "pager", Kind: "webhook", Events: []string{"node.lost", "node.back"}, Rooms: []string{}},
		{Name: "chat", Kind: "slack", Events: []string{}, Rooms: []string{"shop"}, Waiting: 3},
	}
}

func (b *board) TestReceiver(_ context.Context, name string) (admin.TestSent, bool) {
	if name == "chat" {
		return admin.TestSent{Receiver: name, ID: "msg_2", Error: "connect: connection refused"}, true
	}
	return admin.TestSent{Receiver: name, ID: "msg_1", Delivered: true, Seconds: 0.0124}, name == "pager"
}

func TestNotifyTestSaysWhatCameOfEach(t *testing.T) {
	at := (&board{}).port(t, "")
	for _, x := range []struct {
		args, stdout, stderr string
		code                 int
	}{
		{"list", "pager (webhook): events node.lost, node.back; rooms all; 0 waiting; nothing sent by this node yet\nchat (slack): events all; rooms shop; 3 waiting; nothing sent by this node yet\n", "", 0},
		{"test pager", "pager: delivered in 0.012 s\n", "", 0},
		{"test", "pager: delivered in 0.012 s\nchat: connect: connection refused\n", "anteroom notify test: not delivered: chat\n", 1},
		{"test pager --json", `{"receiver":"pager","id":"msg_1","delivered":true,"seconds":0.0124}` + "\n", "", 0},
		{"test nobody", "", "anteroom notify test: \"nobody\": the node has no notifications of that name; there are pager, chat\n", 1},
	} {
		stdout, stderr, code := execute(t, t.Context(), append([]string{"notify"}, append(strings.Fields(x.args), "--admin", at)...)...)
		if code != x.code || stdout != x.stdout || stderr != x.stderr {
			t.Errorf("notify %s: exit code %d, want %d\n%s%s", x.args, code, x.code, stdout, stderr)
		}
	}
}
