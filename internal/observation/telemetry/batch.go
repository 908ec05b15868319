package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// A batch gathers spans, and exports them together. The owner calls close.
type batch struct {
	client   otlptrace.Client
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
	losses   losses
	limits   batchLimits

	ready   chan struct{}           // capacity 1: there is a full chunk
	flushes chan chan<- struct{}    // have all exported
	stop    chan struct{}           // closed by close
	done    chan struct{}           // closed when run has returned
	ending  context.Context         // of exports; a batch has one for its life
	cancel  context.CancelCauseFunc // of ending
	once    sync.Once               // of close

	// mu guards the fields below, and is held while a span is copied.
	mu     sync.Mutex
	chunks []chunk // the last one is being filled
	spans  int     // in chunks
	spare  []byte  // for the next chunk; nil if there is none
	usual  int     // the size of the last chunk
	closed bool
}

// A chunk has spans as ScopeSpans has them.
type chunk struct {
	text  []byte
	spans int
}

// batchLimits are those of the environment.
//
// Spec: OpenTelemetry, environment variables, Batch Span Processor.
type batchLimits struct {
	queue, most    int
	delay, timeout time.Duration
}

func newBatchLimits() (l batchLimits, err error) {
	number := func(name string, otherwise int) int {
		text := os.Getenv(name)
		if text == "" {
			return otherwise
		}
		n, e := strconv.Atoi(text)
		if e != nil || n <= 0 {
			err = errors.Join(err, fmt.Errorf("%s is %q; want a number above 0", name, text))
		}
		return n
	}
	l.queue = number("OTEL_BSP_MAX_QUEUE_SIZE", 2048)
	l.most = min(number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), l.queue)
	l.delay = time.Duration(number("OTEL_BSP_SCHEDULE_DELAY", 5000)) * time.Millisecond
	l.timeout = time.Duration(number("OTEL_BSP_EXPORT_TIMEOUT", 30000)) * time.Millisecond
	return l, err
}

func newBatch(client otlptrace.Client, l batchLimits, res *resourcepb.Resource, version string, lost losses) *batch {
	b := &batch{
		client: client, resource: res, scope: &commonpb.InstrumentationScope{Name: scope, Version: version}, losses: lost, limits: l,
		ready: make(chan struct{}, 1), flushes: make(chan chan<- struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	b.ending, b.cancel = context.WithCancelCause(context.Background())
	go b.run() // ends with close
	return b
}

// add adds a span. It keeps a copy.
func (b *batch) add(span []byte) {
	b.mu.Lock()
	if b.closed || b.spans >= b.limits.queue {
		b.mu.Unlock()
		b.losses.report(1, errQueueFull)
		return
	}
	if n := len(b.chunks); n == 0 || b.chunks[n-1].spans == b.limits.most {
		b.chunks = append(b.chunks, chunk{text: b.bufferLocked()})
	}
	c := &b.chunks[len(b.chunks)-1]
	c.text = appendBytes(c.text, scopeSpans, span)
	c.spans++
	b.spans++
	full := c.spans == b.limits.most
	b.mu.Unlock()
	if full {
		select {
		case b.ready <- struct{}{}:
		default:
		}
	}
}

// mostSpare bounds the buffer that is kept, in bytes.
const mostSpare = 1 << 20

var errQueueFull = errors.New("more spans wait than OTEL_BSP_MAX_QUEUE_SIZE")

// bufferLocked returns an empty buffer for a chunk, which need not grow if the chunk is as
// large as the last one.
func (b *batch) bufferLocked() []byte {
	buf := b.spare
	if b.spare = nil; buf == nil && b.usual > 0 {
		buf = make([]byte, 0, min(b.usual+b.usual/8, mostSpare))
	}
	return buf
}

// run exports until close.
func (b *batch) run() {
	defer close(b.done)
	late := time.NewTicker(b.limits.delay)
	defer late.Stop()
	for {
		select {
		case <-b.ready:
			b.export(true)
		case <-late.C:
			b.export(false)
		case done := <-b.flushes:
			b.export(false)
			close(done)
		case <-b.stop:
			b.export(false)
			return
		}
	}
}

// export exports what is there; only full chunks if onlyFull is set.
func (b *batch) export(onlyFull bool) {
	for c, ok := b.take(onlyFull); ok; c, ok = b.take(onlyFull) {
		ctx, cancel := context.WithTimeout(b.ending, b.limits.timeout)
		err := b.client.UploadTraces(ctx, []*tracepb.ResourceSpans{b.message(c)})
		cancel()
		if err != nil {
			b.losses.report(c.spans, err)
		}
		b.mu.Lock()
		b.spans -= c.spans
		if b.usual = len(c.text); cap(c.text) <= mostSpare {
			b.spare = c.text[:0]
		}
		b.mu.Unlock()
	}
}

func (b *batch) take(onlyFull bool) (c chunk, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.chunks) == 0 || onlyFull && b.chunks[0].spans < b.limits.most {
		return c, false
	}
	c, b.chunks = b.chunks[0], b.chunks[1:]
	return c, true
}

// message returns a chunk as it is exported: its spans are written already, and so they are
// what the message has besides the fields that are set.
func (b *batch) message(c chunk) *tracepb.ResourceSpans {
	spans := &tracepb.ScopeSpans{Scope: b.scope}
	spans.ProtoReflect().SetUnknown(c.text)
	return &tracepb.ResourceSpans{Resource: b.resource, ScopeSpans: []*tracepb.ScopeSpans{spans}}
}

func (b *batch) flush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case b.flushes <- done:
	case <-b.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close exports what waits, and ends the batch. It may be called again.
func (b *batch) close(ctx context.Context) (err error) {
	b.once.Do(func() {
		b.mu.Lock()
		b.closed = true
		b.mu.Unlock()
		close(b.stop)
		select {
		case <-b.done:
		case <-ctx.Done():
			err = context.Cause(ctx)
			b.cancel(err)
			<-b.done
		}
		b.cancel(nil)
		err = errors.Join(err, b.client.Stop(context.WithoutCancel(ctx))) // nothing is in progress
	})
	return err
}
