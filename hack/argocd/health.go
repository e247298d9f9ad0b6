package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/argoproj/gitops-engine/pkg/health"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	luajson "layeh.com/gopher-json"
)

// scriptTimeout is what Argo CD gives a script.
const scriptTimeout = time.Second

// healthChecks are the scripts that say how healthy objects of a kind are.
type healthChecks map[schema.GroupKind]string

// readHealthChecks reads a directory in the layout of Argo CD's own repository.
func readHealthChecks(dir string) (healthChecks, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "health.lua"))
	if err != nil {
		return nil, err
	}
	checks := healthChecks{}
	for _, path := range paths {
		script, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		kind := filepath.Dir(path)
		checks[schema.GroupKind{Group: filepath.Base(filepath.Dir(kind)), Kind: filepath.Base(kind)}] = string(script)
	}
	return checks, nil
}

// GetResourceHealth runs the script of the kind; nil if there is none, so that the engine's
// own checks decide. Of the libraries, those are open that Argo CD opens.
func (c healthChecks) GetResourceHealth(obj *unstructured.Unstructured) (*health.HealthStatus, error) {
	script, ok := c[obj.GroupVersionKind().GroupKind()]
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), scriptTimeout)
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
	plain, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, err
	}
	value, err := luajson.Decode(state, plain)
	if err != nil {
		return nil, err
	}
	state.SetGlobal("obj", value)
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	answer, err := luajson.Encode(state.Get(-1))
	if err != nil {
		return nil, err
	}
	found := &health.HealthStatus{}
	if err := json.Unmarshal(answer, found); err != nil {
		return nil, err
	}
	return found, nil
}
