package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// decoder reads YAML and JSON as long as what it has left lasts. The parsers
// bound the number of aliases, but neither what these stand for nor how much
// memory a text takes once it is parsed.
type decoder struct {
	// documents that may still come.
	documents int

	// nodes is the number of bytes that may still start a value.
	nodes int

	// weight is the length of keys and strings, plus one for every other value,
	// that may still come: about the text that there would be without aliases.
	weight int
}

var (
	errTooManyDocuments = fmt.Errorf("more than %d documents", MaxDocuments)
	errTooManyNodes     = fmt.Errorf("more than %d values", MaxNodes)
	errTooHeavy         = fmt.Errorf("expands to more than %d bytes", MaxTotalBytes)
	errTooDeep          = fmt.Errorf("nested deeper than %d levels", MaxDepth)
	errAmbiguousKeys    = errors.New("two keys of one map have the same JSON form")
)

func newDecoder() *decoder {
	return &decoder{documents: MaxDocuments, nodes: MaxNodes, weight: MaxTotalBytes}
}

func spend(left *int, amount int, exhausted error) error {
	if *left -= amount; *left < 0 {
		return exhausted
	}
	return nil
}

// decode reads a stream of YAML documents or JSON values into the value tree of
// unstructured objects: map[string]any, []any, string, bool, int64, float64 and
// nil. YAML is version 1.1, where an unquoted "on" is a boolean, since published
// bundles are written for it.
func (d *decoder) decode(content []byte) ([]any, error) {
	if err := spend(&d.nodes, countNodes(content), errTooManyNodes); err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(content); bytes.HasPrefix(trimmed, []byte("{")) {
		documents, err := d.stream(jsonStream(trimmed))
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return documents, err
		}
		// Not JSON after all: a YAML flow mapping starts the same way.
	}
	return d.stream(yaml.NewDecoder(bytes.NewReader(content)).Decode)
}

// countNodes bounds the number of values in a text before it is parsed: each of
// them, the first excepted, comes after one of these bytes, or else is the null
// of a key that does.
func countNodes(content []byte) int {
	count := 1
	for _, b := range content {
		switch b {
		case '\n', '\r', ',', '[', '{', ':', '-', '?':
			count++
		}
	}
	return count
}

func jsonStream(content []byte) func(into any) error {
	stream := json.NewDecoder(bytes.NewReader(content))
	return func(into any) error {
		var raw json.RawMessage
		if err := stream.Decode(&raw); err != nil {
			return err
		}
		return utiljson.Unmarshal(raw, into)
	}
}

// stream decodes until the end of the input.
func (d *decoder) stream(next func(into any) error) ([]any, error) {
	var documents []any
	for {
		var value any
		if err := next(&value); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		if err := spend(&d.documents, 1, errTooManyDocuments); err != nil {
			return nil, err
		}
		document, err := d.value(value, 0)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}

// value turns what the parsers give into the value tree.
func (d *decoder) value(value any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep
	}
	switch value := value.(type) {
	case map[any]any:
		return d.yamlMap(value, depth)
	case map[string]any:
		return d.jsonMap(value, depth)
	case []any:
		return d.list(value, depth)
	case string:
		return value, d.add(len(value))
	default:
		if err := d.add(1); err != nil {
			return nil, err
		}
		return normalizeScalar(value)
	}
}

func (d *decoder) add(weight int) error {
	return spend(&d.weight, weight, errTooHeavy)
}

func (d *decoder) yamlMap(in map[any]any, depth int) (any, error) {
	out := make(map[string]any, len(in))
	for key, value := range in {
		name, err := keyString(key)
		if err != nil {
			return nil, err
		}
		if _, taken := out[name]; taken {
			return nil, errAmbiguousKeys
		}
		if err := d.add(len(name)); err != nil {
			return nil, err
		}
		if out[name], err = d.value(value, depth+1); err != nil {
			return nil, err
		}
		// What has been turned over is not kept twice.
		delete(in, key)
	}
	return out, nil
}

func (d *decoder) jsonMap(in map[string]any, depth int) (any, error) {
	for name, value := range in {
		if err := d.add(len(name)); err != nil {
			return nil, err
		}
		normal, err := d.value(value, depth+1)
		if err != nil {
			return nil, err
		}
		in[name] = normal
	}
	return in, nil
}

func (d *decoder) list(in []any, depth int) (any, error) {
	for i, value := range in {
		var err error
		if in[i], err = d.value(value, depth+1); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// normalizeScalar gives a number the type it would have after a round trip
// through JSON, which is what an API server sees.
func normalizeScalar(value any) (any, error) {
	switch value := value.(type) {
	case nil, bool, int64:
		return value, nil
	case int:
		return int64(value), nil
	case uint64:
		return float64(value), nil
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("number %v has no JSON form", value)
		}
		if value == math.Trunc(value) && math.Abs(value) < 1<<63 {
			return int64(value), nil
		}
		return value, nil
	default:
		return nil, fmt.Errorf("value of type %T has no JSON form", value)
	}
}

// keyString is the text of a map key: JSON knows only strings as keys.
func keyString(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return key, nil
	case int:
		return strconv.Itoa(key), nil
	case int64:
		return strconv.FormatInt(key, 10), nil
	case bool:
		return strconv.FormatBool(key), nil
	case float64:
		return strconv.FormatFloat(key, 'g', -1, 32), nil
	default:
		return "", fmt.Errorf("map key of type %T has no JSON form", key)
	}
}

// decodeTyped fills a typed object. Fields that the type does not have are
// dropped; one of another type is an error that names it.
func decodeTyped(object map[string]any, into any) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
	if err == nil {
		return nil
	}
	// The converter is fast but keeps to itself where it failed.
	encoded, encodeErr := json.Marshal(object)
	if encodeErr != nil {
		return err
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(encoded, into)); ok {
		return fmt.Errorf("%s: got %s, want %s", mismatch.Field, mismatch.Value, mismatch.Type)
	}
	return err
}
