package requirement

import (
	"encoding/json"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const packageProperty = "olm.package"

// properties of an extension as rules see them: a list of maps with a type and a
// value.
func (c *Checker) properties(extension int) ref.Val {
	if c.lists == nil {
		c.lists = make([]ref.Val, len(c.cluster.Extensions))
	}
	if c.lists[extension] == nil {
		list, size := c.cluster.Extensions[extension].list()
		c.lists[extension] = list
		c.spent += size / jsonPerCost
	}
	return c.lists[extension]
}

// list states the package even if no catalog has the bundle any more. The size
// is that of what was decoded, in bytes.
func (e *Extension) list() (_ ref.Val, size uint64) {
	var list []ref.Val
	stated := false
	room := maxProperties
	for _, property := range e.Properties {
		if len(property.Value) > maxValue || len(property.Type)+len(property.Value) > room {
			continue
		}
		room -= len(property.Type) + len(property.Value)
		var value any
		if json.Unmarshal(property.Value, &value) != nil {
			continue
		}
		stated = stated || property.Type == packageProperty
		list = append(list, propertyOf(property.Type, valueOf(value)))
	}
	if !stated {
		list = append(list, propertyOf(packageProperty, valueOf(map[string]any{
			"packageName": e.Package,
			"version":     e.Version,
		})))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list), uint64(maxProperties - room)
}

func propertyOf(name string, value ref.Val) ref.Val {
	return types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{
		types.String("type"):  types.String(name),
		types.String("value"): value,
	})
}

// valueOf converts all of a value at once. The adapter of the library does it at
// each access, and goes over all keys of a map before it says the first.
func valueOf(value any) ref.Val {
	switch value := value.(type) {
	case bool:
		return types.Bool(value)
	case float64:
		return types.Double(value)
	case string:
		return types.String(value)
	case []any:
		list := make([]ref.Val, len(value))
		for i, element := range value {
			list[i] = valueOf(element)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, list)
	case map[string]any:
		converted := make(map[ref.Val]ref.Val, len(value))
		for key, element := range value {
			converted[types.String(key)] = valueOf(element)
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, converted)
	}
	return types.NullValue
}
