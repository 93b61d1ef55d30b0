package priorityqueue

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/anteroom/anteroom/internal/broker"
	"github.com/anteroom/anteroom/internal/pqueue"
	anteroomv1 "github.com/anteroom/anteroom/proto/anteroom/v1"
)

// The calls on many items at once. Each item is a call of its own, and goes as that goes.

const (
	batchMax      = 1000      // items
	batchBytesMax = 192 << 10 // of ids, keys and payloads: as much as the largest item; a request is 256 KiB at most
)

// one is an item of a batch: a call, or why there is none; then how it went.
type one struct {
	call   broker.Call
	err    error
	answer broker.Answer
}

// all carries out the calls of a batch. The error is about the batch as a whole.
func (s *Server) all(ctx context.Context, queue string, batch []one) error {
	if err := checkQueue(queue); err != nil {
		return err
	}
	if len(batch) == 0 || len(batch) > batchMax {
		return invalid("%d items; give 1 to %d", len(batch), batchMax)
	}
	var calls []broker.Call
	for _, o := range batch {
		if o.err == nil {
			calls = append(calls, o.call)
		}
	}
	asked, cancel := context.WithTimeout(ctx, s.c.Answer)
	defer cancel()
	answers := s.c.Queues.DoAll(asked, calls)
	if ctx.Err() != nil {
		return s.statusOf(ctx.Err())
	}
	for i := range batch {
		o := &batch[i]
		if o.err != nil {
			continue
		}
		o.answer, answers = answers[0], answers[1:]
		if code := o.answer.Result.Code; code != pqueue.OK {
			o.err = s.verdict(code)
		}
	}
	return nil
}

// FailureOf is err, a status, as the result of one item of a batch has it; nil if there
// is none.
func FailureOf(err error) *anteroomv1.Failure {
	if err == nil {
		return nil
	}
	is := status.Convert(err)
	f := &anteroomv1.Failure{Code: int32(is.Code()), Message: is.Message()}
	for _, d := range is.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			f.Reason = d.GetReason()
		case *errdetails.RetryInfo:
			f.RetryDelay = d.GetRetryDelay()
		}
	}
	return f
}

// InsertBatch puts items into a queue.
func (s *Server) InsertBatch(ctx context.Context, r *anteroomv1.InsertBatchRequest) (*anteroomv1.InsertBatchResponse, error) {
	bytes := 0
	batch := make([]one, len(r.GetItems()))
	for i, n := range r.GetItems() {
		bytes += len(n.GetId()) + len(n.GetKey()) + len(n.GetPayload())
		batch[i].call, batch[i].err = s.inserted(r.GetQueue(), n)
	}
	if bytes > batchBytesMax {
		return nil, invalid("items: %d bytes of ids, keys and payloads; give %d at most, and the rest in another batch", bytes, batchBytesMax)
	}
	if err := s.all(ctx, r.GetQueue(), batch); err != nil {
		return nil, err
	}
	a := &anteroomv1.InsertBatchResponse{}
	for _, o := range batch {
		result := &anteroomv1.InsertResult{Outcome: &anteroomv1.InsertResult_Failure{Failure: FailureOf(o.err)}}
		if o.err == nil {
			result.Outcome = &anteroomv1.InsertResult_Inserted{Inserted: placed(o.call, o.answer)}
		}
		a.Results = append(a.Results, result)
	}
	return a, nil
}

// receipts are calls by the holders of leases.
func receipts(op pqueue.Op, queue string, all []string) []one {
	batch := make([]one, len(all))
	for i, receipt := range all {
		batch[i].call, batch[i].err = leased(op, queue, receipt)
	}
	return batch
}

// AckBatch says that the work on items is done.
func (s *Server) AckBatch(ctx context.Context, r *anteroomv1.AckBatchRequest) (*anteroomv1.AckBatchResponse, error) {
	batch := receipts(pqueue.OpAck, r.GetQueue(), r.GetReceipts())
	if err := s.all(ctx, r.GetQueue(), batch); err != nil {
		return nil, err
	}
	a := &anteroomv1.AckBatchResponse{}
	for _, o := range batch {
		a.Results = append(a.Results, &anteroomv1.AckResult{Failure: FailureOf(o.err)})
	}
	return a, nil
}

// ExtendBatch makes leases last.
func (s *Server) ExtendBatch(ctx context.Context, r *anteroomv1.ExtendBatchRequest) (*anteroomv1.ExtendBatchResponse, error) {
	lease, err := duration("lease", r.GetLease())
	if err != nil {
		return nil, err
	}
	batch := receipts(pqueue.OpExtend, r.GetQueue(), r.GetReceipts())
	for i := range batch {
		batch[i].call.Command.For = lease
	}
	if err := s.all(ctx, r.GetQueue(), batch); err != nil {
		return nil, err
	}
	a := &anteroomv1.ExtendBatchResponse{}
	for _, o := range batch {
		result := &anteroomv1.ExtendResult{Outcome: &anteroomv1.ExtendResult_Failure{Failure: FailureOf(o.err)}}
		if o.err == nil {
			result.Outcome = &anteroomv1.ExtendResult_Until{Until: moment(o.answer.Result.Until)}
		}
		a.Results = append(a.Results, result)
	}
	return a, nil
}
