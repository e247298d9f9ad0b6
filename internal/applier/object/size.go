package object

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxObjectBytes is the largest request that an API server reads. It cannot be configured. The limit of
	// etcd is lower by default and can be configured, so only the write shows it.
	maxObjectBytes = 3 << 20

	// maxCustomBytes is the largest request that an API server sends to etcd. Custom resources are stored as
	// JSON. Built-in kinds are stored in another form, which is smaller.
	maxCustomBytes = 2 << 20

	// maxDataBytes is the largest data of a ConfigMap or a Secret, without the keys.
	maxDataBytes = 1 << 20
)

// TooLargeError reports an object that no API server accepts. Nothing was written.
type TooLargeError struct {
	Object Key
	Bytes  int
	Limit  int

	// isData is true if the sizes count only the data of the object.
	isData bool
}

func (e *TooLargeError) Error() string {
	data := ""
	if e.isData {
		data = " of data"
	}
	return fmt.Sprintf("%s is too large: it has %d bytes%s, and API servers accept at most %d", e.Object, e.Bytes, data, e.Limit)
}

// TooLarge returns true.
func (e *TooLargeError) TooLarge() bool { return true }

// CheckSizes returns [*TooLargeError] for the first object that is too large for every API server. The
// controller makes no dry run for changes to ConfigMaps and Secrets, nor for objects of kinds that the same revision
// defines.
func CheckSizes(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if size := dataBytes(object); size > maxDataBytes {
			return &TooLargeError{Object: KeyOf(object), Bytes: size, Limit: maxDataBytes, isData: true}
		}
		text, err := json.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", KeyOf(object), err)
		}
		limit := maxCustomBytes
		if _, isBuiltin := goTypeOf(object.GroupVersionKind()); isBuiltin {
			limit = maxObjectBytes
		}
		if len(text) > limit {
			return &TooLargeError{Object: KeyOf(object), Bytes: len(text), Limit: limit}
		}
	}
	return nil
}

// dataField is a field with data.
type dataField struct {
	name      string
	isEncoded bool // in base64
}

// dataFields contains the fields with data by kind, for kinds with bounded data. For the same key, the last field counts.
var dataFields = map[schema.GroupKind][]dataField{
	{Kind: "ConfigMap"}: {{name: "data"}, {name: "binaryData", isEncoded: true}},
	SecretKind:          {{name: "data", isEncoded: true}, {name: "stringData"}},
}

// dataBytes returns the size of the data of a ConfigMap or a Secret as the API server counts it: decoded.
func dataBytes(object *unstructured.Unstructured) int {
	sizes := map[string]int{}
	for _, field := range dataFields[object.GroupVersionKind().GroupKind()] {
		values, _ := object.Object[field.name].(map[string]any)
		for key, value := range values {
			text, _ := value.(string)
			sizes[key] = len(text)
			if decoded, err := base64.StdEncoding.DecodeString(text); field.isEncoded && err == nil {
				sizes[key] = len(decoded)
			}
		}
	}
	total := 0
	for _, size := range sizes {
		total += size
	}
	return total
}
