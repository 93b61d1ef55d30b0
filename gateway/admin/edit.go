package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/gateway"
)

// bodyMax bounds what an operator sends. The longest room is one of many lists of
// addresses.
const bodyMax = 1 << 20

// problem is an error with what is wrong with each key.
type problem struct {
	gateway.Problem
	Errors []FieldError `json:"errors,omitempty"`
}

// methods answers a path by method. What is not there is refused with a list.
type methods map[string]http.HandlerFunc

func (a *admin) on(mux *http.ServeMux, path string, m methods) {
	if get, ok := m[http.MethodGet]; ok {
		m[http.MethodHead] = get
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	allow := strings.Join(names, ", ")
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		h, ok := m[r.Method]
		if !ok {
			w.Header().Set("Allow", allow)
			a.fail(w, r, http.StatusMethodNotAllowed, "method_not_allowed", "Use "+strings.Join(names, " or ")+".")
			return
		}
		h(w, r)
	})
}

// edits adds what changes rooms.
func (a *admin) edits(mux *http.ServeMux) {
	o := a.c.Operator
	mode := func(m Mode) methods {
		return methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
			out, err := o.SetMode(r.Context(), a.edit(r), m)
			a.outcome(w, r, out, err)
		}}
	}
	a.on(mux, "/v1/rooms/{room}", methods{
		http.MethodGet: a.room, http.MethodPut: a.put, http.MethodPatch: a.patch, http.MethodDelete: a.remove,
	})
	a.on(mux, "/v1/rooms/{room}/hold", mode(Held))
	a.on(mux, "/v1/rooms/{room}/release", mode(Normal))
	a.on(mux, "/v1/rooms/{room}/drain", mode(Draining))
	a.on(mux, "/v1/rooms/{room}/messages", methods{http.MethodPost: a.message})
	a.on(mux, "/v1/nodes/{node}/reclaim", methods{http.MethodPost: func(w http.ResponseWriter, r *http.Request) {
		done, err := o.Reclaim(r.Context(), a.edit(r), r.PathValue("node"))
		if a.refused(w, r, err) {
			return
		}
		a.json(w, r, done)
	}})
	a.on(mux, "/v1/rooms/{room}/history", methods{http.MethodGet: a.history})
	a.on(mux, "/v1/rooms/{room}/report", methods{http.MethodGet: a.report})
	a.notifications(mux)
	a.on(mux, "/v1/check", methods{http.MethodPost: a.check})
	a.on(mux, "/v1/audit", methods{http.MethodGet: func(w http.ResponseWriter, r *http.Request) { a.json(w, r, AuditList{o.Audit()}) }})
}

func (a *admin) edit(r *http.Request) Edit {
	who := "loopback"
	if a.asks() {
		b, _ := a.who(r)
		if who = b.name; who != adminToken {
			who = "token " + who
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return Edit{
		Room: r.PathValue("room"), Who: who, From: host,
		IfMatch: strings.Join(r.Header.Values("If-Match"), ","), IfNoneMatch: r.Header.Get("If-None-Match"),
	}
}

// sameSite lets no page of another site change anything: the browser of an
// operator may reach a port that asks for no token.
func (a *admin) sameSite(h http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, http.StatusForbidden, "cross_origin", "A page of another site asks for this.")
	}))
	return guard.Handler(h)
}

// room answers with all there is to say of a room.
func (a *admin) room(w http.ResponseWriter, r *http.Request) {
	state, ok := a.find(r.PathValue("room"))
	if !ok {
		a.unknown(w, r)
		return
	}
	if a.c.Operator == nil {
		a.json(w, r, state)
		return
	}
	c, ok := a.c.Operator.Configured(state.Name)
	if !ok {
		a.unknown(w, r)
		return
	}
	a.configured(w, r, http.StatusOK, Outcome{Room: c}, state)
}

func (a *admin) configured(w http.ResponseWriter, r *http.Request, status int, o Outcome, state any) {
	all, err := reply(o.Room, o.Pending, state)
	var b []byte
	if err == nil {
		b, err = json.Marshal(all)
	}
	if err != nil {
		a.c.Logger.Error("admin answer does not encode", "path", r.URL.Path, "error", err)
		a.fail(w, r, http.StatusInternalServerError, "internal", "Something went wrong here.")
		return
	}
	w.Header().Set("ETag", o.Room.ETag)
	write(w, r, status, "application/json", b)
}

// outcome answers an edit with the room as it is now.
func (a *admin) outcome(w http.ResponseWriter, r *http.Request, o Outcome, err error) {
	if a.refused(w, r, err) {
		return
	}
	status := http.StatusOK
	switch {
	case o.Pending:
		status = http.StatusAccepted
	case o.Created:
		status = http.StatusCreated
	}
	var state any = struct{}{}
	if s, ok := a.find(r.PathValue("room")); ok {
		state = s
	}
	a.configured(w, r, status, o, state)
}

func (a *admin) put(w http.ResponseWriter, r *http.Request) {
	body, ok := a.body(w, r, "application/json")
	if !ok {
		return
	}
	o, err := a.c.Operator.Put(r.Context(), a.edit(r), body)
	a.outcome(w, r, o, err)
}

// patch changes some keys of a room (RFC 7396): it puts what the room is with
// them in it, on the condition that it still is that.
func (a *admin) patch(w http.ResponseWriter, r *http.Request) {
	body, ok := a.body(w, r, "application/merge-patch+json", "application/json")
	if !ok {
		return
	}
	now, ok := a.c.Operator.Configured(r.PathValue("room"))
	if !ok {
		a.unknown(w, r)
		return
	}
	a.change(w, r, now, body)
}

// change makes a room what it is now with the keys of a patch.
func (a *admin) change(w http.ResponseWriter, r *http.Request, now Configured, patch []byte) {
	merged, err := mergePatch(now.Keys, patch)
	if err != nil {
		a.fail(w, r, http.StatusBadRequest, "room_invalid", "The body is no JSON object; send one with the keys that are to change.")
		return
	}
	e := a.edit(r)
	if e.IfMatch != "" && e.IfMatch != "*" && !matches(e.IfMatch, now.ETag) {
		a.changed(w, r)
		return
	}
	e.IfMatch = now.ETag
	o, err := a.c.Operator.Put(r.Context(), e, merged)
	a.outcome(w, r, o, err)
}

// mergePatch puts the keys of one object over those of another; null removes one.
// Objects within are merged likewise.
func mergePatch(onto, patch []byte) ([]byte, error) {
	var to, from map[string]json.RawMessage
	if err := json.Unmarshal(patch, &from); err != nil || from == nil {
		return nil, errors.New("no object")
	}
	if json.Unmarshal(onto, &to) != nil || to == nil {
		to = map[string]json.RawMessage{}
	}
	for key, v := range from {
		switch v := bytes.TrimSpace(v); {
		case string(v) == "null":
			delete(to, key)
		case len(v) > 0 && v[0] == '{':
			merged, err := mergePatch(to[key], v)
			if err != nil {
				return nil, err
			}
			to[key] = merged
		default:
			to[key] = v
		}
	}
	return json.Marshal(to)
}

// matches reports whether a header of entity tags has this one.
func matches(header, etag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == etag || one == "*" {
			return true
		}
	}
	return false
}

// Matches reports whether an edit of a room that has this tag may go on. A room
// that is not there has an empty one.
func (e *Edit) Matches(etag string) bool {
	switch {
	case e.IfMatch != "" && (etag == "" || !matches(e.IfMatch, etag)):
		return false
	case e.IfNoneMatch != "" && etag != "" && matches(e.IfNoneMatch, etag):
		return false
	}
	return true
}

func (a *admin) remove(w http.ResponseWriter, r *http.Request) {
	o, err := a.c.Operator.Delete(r.Context(), a.edit(r))
	switch {
	case a.refused(w, r, err):
	case o.Pending:
		write(w, r, http.StatusAccepted, "application/json", []byte(`{"pending":true}`))
	default:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	}
}

// body reads what was sent, if it is of one of those kinds.
func (a *admin) body(w http.ResponseWriter, r *http.Request, kinds ...string) ([]byte, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !slices.Contains(kinds, kind) {
		w.Header().Set("Accept", strings.Join(kinds, ", "))
		a.fail(w, r, http.StatusUnsupportedMediaType, "media_type_unsupported", "Send "+strings.Join(kinds, " or ")+".")
		return nil, false
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		a.fail(w, r, http.StatusRequestEntityTooLarge, "body_too_large", "A room has at most 1 MiB.")
		return nil, false
	case err != nil:
		a.fail(w, r, http.StatusBadRequest, "request_invalid", "The body did not arrive whole.")
		return nil, false
	}
	return b, true
}

func (a *admin) changed(w http.ResponseWriter, r *http.Request) {
	a.fail(w, r, http.StatusPreconditionFailed, "room_changed", "The room is not the one that If-Match or If-None-Match speaks of. Read it again.")
}

// refused answers an error, if there is one.
func (a *admin) refused(w http.ResponseWriter, r *http.Request, err error) bool {
	if err == nil {
		return false
	}
	var no *Refusal
	if !errors.As(err, &no) {
		a.c.Logger.Error("a room could not be changed", "path", r.URL.Path, "error", err)
		a.fail(w, r, http.StatusInternalServerError, "internal", "Something went wrong here.")
		return true
	}
	a.failWith(w, r, no.Status, no.Code, no.Detail, no.Errors)
	return true
}
