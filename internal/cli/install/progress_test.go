package install

import (
	"bytes"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/overview"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	row := func(health overview.Health, message string) overview.Row {
		return overview.Row{Name: "x", Health: health, Message: message}
	}
	ready := row(overview.Ready, "done")
	ready.Installed = "1.0.0"
	pending, held, other := ready, ready, ready
	pending.Pending, pending.Available = overview.ForApproval, "1.1.0"
	held.Pending = overview.ForOperator
	other.Installed = "0.9.0"
	for name, test := range map[string]struct {
		rows    []overview.Row
		deleted bool
		done    bool
		err     string
		stalled bool
		printed string
	}{
		"to the end": {rows: []overview.Row{row(overview.Waiting, "a"), row(overview.Reconciling, "b"), row(overview.Reconciling, "b"), ready}, done: true, printed: "Waiting: a\nReconciling: b\nReady: done\n"},
		"waits for a person": {
			rows: []overview.Row{pending}, done: true, printed: "Ready: done\n",
			err: "clusterextension/x stays at version 1.0.0, and a person has to act: version 1.1.0 waits until `kubectl extension approve x`",
		},
		"waits for the operator": {rows: []overview.Row{held}, printed: "Ready: done\n"},
		"another version": {
			rows: []overview.Row{other}, done: true, printed: "Ready: done\n",
			err: "clusterextension/x is ready at version 0.9.0, and not at 1.0.0, which was chosen before: kubectl extension explain x says why",
		},
		"nothing is there": {rows: []overview.Row{row(overview.Ready, "nothing")}, printed: "Ready: nothing\n"},
		"stalled":          {rows: []overview.Row{row(overview.Stalled, "a")}, stalled: true, printed: "Stalled: a\n"},
		"and no more":      {rows: []overview.Row{row(overview.Stalled, "a"), row(overview.Reconciling, "b")}, printed: "Stalled: a\nReconciling: b\n"},
		"suspended":        {rows: []overview.Row{row(overview.Suspended, "a")}, done: true, err: "clusterextension/x is suspended: nothing happens until `kubectl extension resume x`", printed: "Suspended: a\n"},
		"deleted":          {rows: []overview.Row{row(overview.Ready, "a")}, deleted: true, done: true, err: "clusterextension/x is deleted by somebody", printed: "Ready: a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var printed bytes.Buffer
			p := progress{to: &printed, version: "1.0.0"}
			var done bool
			var err error
			for _, row := range test.rows {
				done, err = p.next(row, test.deleted, func() {})
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if done != test.done || text != test.err || (p.stop != nil) != test.stalled || printed.String() != test.printed {
				t.Errorf("done %t, error %v, stalled %t, printed\n%s", done, err, p.stop != nil, printed.String())
			}
			if p.stop != nil {
				p.stop.Stop()
			}
		})
	}
}
