package argocd

import (
	"context"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scriptTimeout is for a script that never ends. Argo CD gives it a second, which tests that run
// beside others on a busy machine can be over without any fault of a script.
const scriptTimeout = 10 * time.Second

// Health is what a check says of an object.
type Health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// What a check may say; Argo CD takes anything else for unknown.
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Degraded    = "Degraded"
	Suspended   = "Suspended"
)

// Action is one that a person may take.
type Action struct {
	Name     string `json:"name"`
	Disabled bool   `json:"disabled"`
}

// Check runs a script over an object. It fails if the script does, or if it says something
// that Argo CD does not know.
func Check(ctx context.Context, script string, obj *unstructured.Unstructured) (Health, error) {
	result, err := run(ctx, script, obj)
	if err != nil {
		return Health{}, err
	}
	said, ok := result.(map[string]any)
	if !ok {
		return Health{}, fmt.Errorf("the check returns %T, not a table", result)
	}
	found := Health{}
	found.Status, _ = said["status"].(string)
	found.Message, _ = said["message"].(string)
	switch found.Status {
	case Healthy, Progressing, Degraded, Suspended:
		return found, nil
	default:
		return Health{}, fmt.Errorf("the check says %v", said["status"])
	}
}

// Discover gives the actions that a script offers, in no order.
func Discover(ctx context.Context, script string, obj *unstructured.Unstructured) ([]Action, error) {
	result, err := run(ctx, script, obj)
	if err != nil {
		return nil, err
	}
	offered, ok := result.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the script returns %T, not a table", result)
	}
	var actions []Action
	for name, properties := range offered {
		action := Action{Name: name}
		if fields, ok := properties.(map[string]any); ok {
			action.Disabled, _ = fields["disabled"].(bool)
		}
		actions = append(actions, action)
	}
	return actions, nil
}

// Act gives the object as an action changes it.
func Act(ctx context.Context, script string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result, err := run(ctx, script, obj)
	if err != nil {
		return nil, err
	}
	changed, ok := result.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the action returns %T, not an object", result)
	}
	return &unstructured.Unstructured{Object: changed}, nil
}

// run gives what a script returns of the object, as JSON knows it. Libraries are those that
// Argo CD opens in production, less the clock: there is none for strings.
func run(ctx context.Context, script string, obj *unstructured.Unstructured) (result any, err error) {
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	state.SetContext(ctx)
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, fmt.Errorf("opening the library %q: %w", name, err)
		}
	}
	state.SetGlobal("obj", toLua(state, obj.Object))
	if err := state.DoString(script); err != nil {
		return nil, fmt.Errorf("running the script: %w", err)
	}
	if state.GetTop() == 0 {
		return nil, errors.New("the script returns nothing")
	}
	return fromLua(state.Get(-1)), nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for name, field := range value {
			table.RawSetString(name, toLua(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	default:
		return lua.LNil
	}
}

// fromLua takes a table without items for an object: Lua does not tell it from an empty list.
func fromLua(value lua.LValue) any {
	switch value := value.(type) {
	case *lua.LTable:
		if value.Len() > 0 {
			list := make([]any, 0, value.Len())
			for i := range value.Len() {
				list = append(list, fromLua(value.RawGetInt(i+1)))
			}
			return list
		}
		object := map[string]any{}
		value.ForEach(func(name, field lua.LValue) { object[name.String()] = fromLua(field) })
		return object
	case lua.LString:
		return string(value)
	case lua.LBool:
		return bool(value)
	case lua.LNumber:
		if whole := int64(value); lua.LNumber(whole) == value {
			return whole
		}
		return float64(value)
	default:
		return nil
	}
}
