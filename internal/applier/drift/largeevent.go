package drift

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Anybody can make an object whose event is larger than what is held of a watch: of a stored byte
// JSON can have six. A watch that ended there would end there each time, for everybody whom
// it serves. So such an event is passed over, and only its beginning is read.

// skipLarge passes over an event that is too large, and says which object it is of. It fails with
// [errLargeEvent] if its beginning does not say that.
func (e *eventReader) skipLarge(kind schema.GroupKind) (event, error) {
	beginning, err := io.ReadAll(e.decoder.Buffered()) // of bytes in memory
	if err != nil {
		return event{}, err
	}
	seen, ok := largeEventOf(kind, beginning)
	if !ok {
		return event{}, fmt.Errorf("reading an event: %w", errLargeEvent)
	}
	return seen, e.discard(beginning)
}

// discard reads to the end of an event with this beginning.
func (e *eventReader) discard(beginning []byte) error {
	end := jsonEnd{}
	for _, char := range beginning {
		end.comesWith(char)
	}
	e.decoder = nil
	from := bufio.NewReader(e.body.R)
	for {
		char, err := from.ReadByte()
		if err != nil {
			return err
		}
		if end.comesWith(char) {
			break
		}
	}
	next, err := from.Peek(from.Buffered())
	if next = bytes.TrimLeft(next, jsonSpace); len(next) > 0 {
		e.behind.Reset(next)
		e.decoder = json.NewDecoder(io.MultiReader(&e.behind, &e.body))
	}
	return err
}

// jsonEnd finds the end of a JSON object by its braces.
type jsonEnd struct {
	depth             int
	inString, escaped bool
}

// comesWith takes one byte more, and says whether the object ends with it.
func (j *jsonEnd) comesWith(char byte) bool {
	switch {
	case j.escaped:
		j.escaped = false
	case j.inString:
		j.escaped = char == '\\'
		j.inString = char != '"'
	case char == '"':
		j.inString = true
	case char == '{':
		j.depth++
	case char == '}':
		j.depth--
		return j.depth == 0
	}
	return false
}

// largeEventOf reads the beginning of an event. API servers write the names and the version of
// an object before all that can be large. It is false if they are not there.
func largeEventOf(kind schema.GroupKind, beginning []byte) (event, bool) {
	var of apiwatch.EventType
	var metadata metav1.ObjectMeta
	decoder := json.NewDecoder(bytes.NewReader(beginning))
	// The error is that the beginning has an end.
	_ = readFields(decoder, readers{
		"type": func() error { return decoder.Decode(&of) },
		"object": func() error {
			return readFields(decoder, readers{"metadata": func() error {
				return readFields(decoder, readers{
					"name":            func() error { return decoder.Decode(&metadata.Name) },
					"namespace":       func() error { return decoder.Decode(&metadata.Namespace) },
					"resourceVersion": func() error { return decoder.Decode(&metadata.ResourceVersion) },
				})
			}})
		},
	})
	seen := event{
		kind:    of,
		key:     object.Key{GroupKind: kind, Namespace: metadata.Namespace, Name: metadata.Name},
		version: metadata.ResourceVersion,
	}
	complete := metadata.Name != "" && metadata.ResourceVersion != ""
	switch of {
	case apiwatch.Deleted:
		return seen.deleted(), complete
	case apiwatch.Added, apiwatch.Modified:
		seen.unknown = true
		return seen, complete
	default:
		return event{}, false
	}
}

// readers read the values of an object by their names. Others are passed over.
type readers map[string]func() error

var errNoObject = errors.New("there is no object")

func readFields(decoder *json.Decoder, read readers) error {
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errNoObject)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string)
		take, wanted := read[text]
		if !wanted {
			take = func() error { return decoder.Decode(new(json.RawMessage)) }
		}
		if err := take(); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}
