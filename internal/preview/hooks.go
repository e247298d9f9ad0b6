package preview

import (
	"fmt"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// HookRun is a hook at one of its events.
type HookRun struct {
	Event hook.Event
	Hook  hook.Hook
}

func (r HookRun) key() object.Key { return object.KeyOf(r.Hook.Object) }

func (r HookRun) String() string { return fmt.Sprintf("%s: %s", r.Event, r.key()) }

// DueHooks returns the hooks that run, in their order: the hooks of the operation, except hooks that have already
// succeeded in it.
func DueHooks(facts Facts) []HookRun {
	progress := facts.Progress
	switch {
	case progress != nil:
	case facts.IsInstalled:
		return nil
	case facts.Installed != nil:
		progress = &hook.Progress{Operation: hook.Upgrade}
	default:
		progress = &hook.Progress{Operation: hook.Install}
	}
	due := runsAt(progress.Event(), facts.Hooks)
	due = due[min(progress.Done, len(due)):]
	if progress.After {
		return due
	}
	after := hook.Progress{Operation: progress.Operation, After: true}
	return append(due, runsAt(after.Event(), facts.Hooks)...)
}

func runsAt(event hook.Event, hooks []hook.Hook) []HookRun {
	var runs []HookRun
	for _, one := range hook.At(event, hooks) {
		runs = append(runs, HookRun{Event: event, Hook: one})
	}
	return runs
}

// dueHook is the one that runs or has failed, of an operation that was begun; nil for none.
func dueHook(facts Facts) *HookRun {
	if facts.Progress == nil {
		return nil
	}
	runs := runsAt(facts.Progress.Event(), facts.Hooks)
	if facts.Progress.Done >= len(runs) {
		return nil
	}
	return &runs[facts.Progress.Done]
}

// waitsOf is for what the operation waits: what the facts say, and a hook that is under way.
func waitsOf(facts Facts) string {
	var waits []string
	if facts.Waits != "" {
		waits = append(waits, facts.Waits)
	}
	if due := dueHook(facts); due != nil && facts.Progress.FailedAt == nil {
		waits = append(waits, fmt.Sprintf("the %s hook %s, which is under way", due.Event, due.key()))
	}
	return strings.Join(waits, "; ")
}
