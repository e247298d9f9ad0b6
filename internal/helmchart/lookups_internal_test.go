package helmchart

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// TestHostileProcess has a process that does with its pipes what templates cannot have it do.
func TestHostileProcess(t *testing.T) {
	t.Parallel()
	asked := bundle.LookupRequest{APIVersion: "v1", Kind: "Pod"}
	for name, test := range map[string]struct {
		does  func(asks *io.PipeWriter, answers *io.PipeReader)
		asked int
		fails bool
	}{
		"it asks no more":             {does: func(asks *io.PipeWriter, _ *io.PipeReader) { _ = asks.Close() }},
		"it says what is no question": {does: func(asks *io.PipeWriter, _ *io.PipeReader) { _, _ = asks.Write([]byte("\x03abc")) }},
		"a question of 1 GB is announced": {does: func(asks *io.PipeWriter, _ *io.PipeReader) {
			_, _ = asks.Write([]byte{0xFC, 0x3F, 0xFF, 0xFF, 0xFF})
			_ = asks.Close()
		}},
		"it sends one of 10 MB": {
			does: func(asks *io.PipeWriter, _ *io.PipeReader) {
				_ = gob.NewEncoder(asks).Encode(bundle.LookupRequest{Name: string(make([]byte, 10<<20))})
			},
			fails: true,
		},
		"it does not hear": {
			does: func(asks *io.PipeWriter, answers *io.PipeReader) {
				_ = answers.Close()
				_ = gob.NewEncoder(asks).Encode(asked)
			},
			asked: 1,
		},
		"it asks for ever": {
			does: func(asks *io.PipeWriter, answers *io.PipeReader) {
				go func() { _, _ = io.Copy(io.Discard, answers) }()
				for encoder := gob.NewEncoder(asks); encoder.Encode(asked) == nil; {
				}
			},
			asked: maxLookups, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			questions, asks := io.Pipe()
			answers, hears := io.Pipe()
			ended := false
			served := &lookups{
				answer: func(context.Context, bundle.LookupRequest) ([]byte, error) { return []byte("{}"), nil },
				limits: DefaultLimits(), end: func() { ended = true },
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				test.does(asks, answers)
			}()
			served.serve(t.Context(), questions, hears)
			_ = questions.CloseWithError(errors.New("the process was ended"))
			<-done
			if served.asked != test.asked || (served.err != nil) != test.fails || ended != test.fails {
				t.Errorf("%d questions, error %v, ended: %t", served.asked, served.err, ended)
			}
		})
	}
}
