package client

import (
	"context"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

const batchBytesMax = 192 << 10 // of ids, keys and payloads in one call

// Put is how one of a PutAll went.
type Put struct {
	Placed
	Err error // nil: it is there
}

// PutAll puts items into the queue in as few calls as it can, 1,000 items and
// 192 KiB of ids, keys and payloads each. Those that fail are tried again as by Put,
// without the others. There is a result for each item, in their order; the error
// is the first of theirs. At a node they are in line in their order.
func (q *Queue) PutAll(ctx context.Context, items []New) ([]Put, error) {
	results := make([]Put, len(items))
	requests := make([]*anteroomv1.NewItem, len(items))
	for i, n := range items {
		if n.ID == "" {
			n.ID = newID()
		}
		results[i].ID = n.ID
		requests[i] = &anteroomv1.NewItem{Id: n.ID, Priority: n.Priority, Payload: n.Payload, NotBefore: stamp(n.NotBefore), Ttl: span(n.TTL), Key: n.Key}
	}
	errs, err := q.batch(ctx, "put", len(items), func(i int) int { return len(requests[i].Id) + len(requests[i].Key) + len(requests[i].Payload) },
		func(ctx context.Context, w wire, which []int) ([]*anteroomv1.Failure, error) {
			a, err := w.InsertBatch(ctx, &anteroomv1.InsertBatchRequest{Queue: q.name, Items: pick(requests, which)})
			return each(which, a.GetResults(), err, func(i int, r *anteroomv1.InsertResult) *anteroomv1.Failure {
				n := r.GetInserted()
				results[i].Handle, results[i].Existed, results[i].State = n.GetHandle(), n.GetExisted(), stateOf(n.GetState())
				return r.GetFailure()
			})
		})
	for i, err := range errs {
		results[i].Err = err
	}
	return results, err
}

// AckAll acknowledges leased items, 1,000 in a call. There is an error, or nil,
// for each receipt, in their order; err is the first of them.
func (q *Queue) AckAll(ctx context.Context, receipts []string) (errs []error, err error) {
	return q.batch(ctx, "ack", len(receipts), none, func(ctx context.Context, w wire, which []int) ([]*anteroomv1.Failure, error) {
		a, err := w.AckBatch(ctx, &anteroomv1.AckBatchRequest{Queue: q.name, Receipts: pick(receipts, which)})
		return each(which, a.GetResults(), err, func(_ int, r *anteroomv1.AckResult) *anteroomv1.Failure { return r.GetFailure() })
	})
}

// Extended is how one of an ExtendAll went.
type Extended struct {
	Until time.Time // by the node's clock
	Err   error     // nil: the lease lasts until then
}

// ExtendAll makes leases last for d from now on, 1,000 in a call; 0 is as long as
// the queue says. There is a result for each receipt, in their order; the error is
// the first of theirs.
func (q *Queue) ExtendAll(ctx context.Context, receipts []string, d time.Duration) ([]Extended, error) {
	results := make([]Extended, len(receipts))
	errs, err := q.batch(ctx, "extend", len(receipts), none, func(ctx context.Context, w wire, which []int) ([]*anteroomv1.Failure, error) {
		a, err := w.ExtendBatch(ctx, &anteroomv1.ExtendBatchRequest{Queue: q.name, Receipts: pick(receipts, which), Lease: span(d)})
		return each(which, a.GetResults(), err, func(i int, r *anteroomv1.ExtendResult) *anteroomv1.Failure {
			results[i].Until = timeOf(r.GetUntil())
			return r.GetFailure()
		})
	})
	for i, err := range errs {
		results[i].Err = err
	}
	return results, err
}

func none(int) int { return 0 }

func pick[T any](all []T, which []int) []T {
	some := make([]T, len(which))
	for n, i := range which {
		some[n] = all[i]
	}
	return some
}

// each hands the results of a call to those that they are about.
func each[T any](which []int, results []T, err error, f func(i int, r T) *anteroomv1.Failure) ([]*anteroomv1.Failure, error) {
	if err == nil && len(results) != len(which) {
		err = status.Errorf(codes.Internal, "%d results for %d items", len(results), len(which))
	}
	if err != nil {
		return nil, err
	}
	failures := make([]*anteroomv1.Failure, len(which))
	for n, i := range which {
		failures[n] = f(i, results[n])
	}
	return failures, nil
}

// batch has send do something with n things, in parts that a node takes, and again
// with those that failed and may yet succeed.
func (q *Queue) batch(ctx context.Context, op string, n int, size func(i int) int, send func(context.Context, wire, []int) ([]*anteroomv1.Failure, error)) ([]error, error) {
	errs := make([]error, n)
	for from := 0; from < n; {
		var part []int
		for bytes := 0; from < n && len(part) < batchMax; from++ {
			bytes += size(from)
			if bytes > batchBytesMax && len(part) > 0 {
				break
			}
			part = append(part, from)
		}
		q.part(ctx, &request{op: op, queue: q.name}, part, errs, send)
	}
	for _, err := range errs {
		if err != nil {
			return errs, err
		}
	}
	return errs, nil
}

// part does a part of a batch, and notes the errors of those that failed.
func (q *Queue) part(ctx context.Context, r *request, pending []int, errs []error, send func(context.Context, wire, []int) ([]*anteroomv1.Failure, error)) {
	err := q.client.call(ctx, r, func(ctx context.Context, w wire) error {
		failures, err := send(ctx, w, pending)
		if err != nil {
			return err
		}
		var again []int
		var why error
		for n, i := range pending {
			errs[i] = nil
			if failures[n] == nil {
				continue
			}
			e := errorOf(r, failureOf(failures[n]))
			if errs[i] = e; e.passes {
				again, why = append(again, i), e.cause
			}
		}
		pending = again
		return why
	})
	for _, i := range pending {
		if errs[i] == nil || err != nil && ctx.Err() != nil {
			errs[i] = err
		}
	}
}

// failureOf is a failure as the error of a call would have been.
func failureOf(f *anteroomv1.Failure) error {
	d := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: f.GetReason()}}
	if f.GetRetryDelay() != nil {
		d = append(d, &errdetails.RetryInfo{RetryDelay: f.GetRetryDelay()})
	}
	s, err := status.New(codes.Code(f.GetCode()), f.GetMessage()).WithDetails(d...)
	if err != nil { // a node that calls a success a failure
		return status.Error(codes.Internal, f.GetMessage())
	}
	return s.Err()
}
