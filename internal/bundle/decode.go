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

// decodeDocuments reads a stream of YAML documents or JSON values into the
// value tree of unstructured objects: map[string]any, []any, string, bool,
// int64, float64 and nil. YAML is version 1.1, where an unquoted "on" is a
// boolean, since published bundles are written for it.
func decodeDocuments(content []byte, maxDocuments int) ([]any, error) {
	if trimmed := bytes.TrimSpace(content); bytes.HasPrefix(trimmed, []byte("{")) {
		documents, err := decodeJSON(trimmed, maxDocuments)
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return documents, err
		}
		// Not JSON after all: a YAML flow mapping starts the same way.
	}
	return decodeYAML(content, maxDocuments)
}

func decodeJSON(content []byte, maxDocuments int) ([]any, error) {
	var documents []any
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
		document, err := normalize(value)
		if err != nil {
			return nil, err
		}
		if len(documents) == maxDocuments {
			return nil, errTooManyDocuments
		}
		documents = append(documents, document)
	}
}

func decodeYAML(content []byte, maxDocuments int) ([]any, error) {
	var documents []any
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		document, err := normalize(value)
		if err != nil {
			return nil, err
		}
		if len(documents) == maxDocuments {
			return nil, errTooManyDocuments
		}
		documents = append(documents, document)
	}
}

var (
	errTooManyDocuments = errors.New("too many documents")
	errAmbiguousKeys    = errors.New("two keys of one map have the same JSON form")
)

// weigher turns what the decoders give into the value tree of unstructured
// objects and bounds it on the way. The weight of a document is the length of
// its keys and strings, plus one for every other value: what it would have as
// text once its aliases are expanded. The YAML decoder bounds the number of
// aliases, but not the length of what they stand for.
type weigher struct {
	weight int
}

func normalize(value any) (any, error) {
	var w weigher
	return w.value(value, 0)
}

func (w *weigher) add(weight int) error {
	w.weight += weight
	if w.weight > MaxDocumentWeight {
		return fmt.Errorf("document expands to more than %d bytes", MaxDocumentWeight)
	}
	return nil
}

func (w *weigher) value(value any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	switch value := value.(type) {
	case map[any]any:
		return w.yamlMap(value, depth)
	case map[string]any:
		return w.jsonMap(value, depth)
	case []any:
		return w.list(value, depth)
	case string:
		return value, w.add(len(value))
	default:
		if err := w.add(1); err != nil {
			return nil, err
		}
		return normalizeScalar(value)
	}
}

func (w *weigher) yamlMap(in map[any]any, depth int) (any, error) {
	out := make(map[string]any, len(in))
	for key, value := range in {
		name, err := keyString(key)
		if err != nil {
			return nil, err
		}
		if _, taken := out[name]; taken {
			return nil, errAmbiguousKeys
		}
		if err := w.add(len(name)); err != nil {
			return nil, err
		}
		if out[name], err = w.value(value, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (w *weigher) jsonMap(in map[string]any, depth int) (any, error) {
	for name, value := range in {
		if err := w.add(len(name)); err != nil {
			return nil, err
		}
		normal, err := w.value(value, depth+1)
		if err != nil {
			return nil, err
		}
		in[name] = normal
	}
	return in, nil
}

func (w *weigher) list(in []any, depth int) (any, error) {
	out := make([]any, len(in))
	for i, value := range in {
		var err error
		if out[i], err = w.value(value, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
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
	var mismatch *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(encoded, into), &mismatch) {
		return fmt.Errorf("%s: got %s, want %s", mismatch.Field, mismatch.Value, mismatch.Type)
	}
	return err
}
