package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

func TestRowOf(t *testing.T) {
	t.Parallel()
	at := metav1.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	is := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	ready := is(ocv1.TypeReady, metav1.ConditionTrue, ocv1.ReasonSucceeded, "all is well")
	unready := is(ocv1.TypeReady, metav1.ConditionFalse, ocv1.ReasonUnavailable, "it does not serve")
	for name, test := range map[string]struct {
		change  func(*ocv1.ClusterExtension)
		health  Health
		message string
		pending string
	}{
		"new":                             {change: func(e *ocv1.ClusterExtension) { e.Status = ocv1.ClusterExtensionStatus{} }, health: Waiting, message: "no controller has looked at this spec yet"},
		"edited":                          {change: func(e *ocv1.ClusterExtension) { e.Generation = 3 }, health: Waiting, message: "no controller has looked at this spec yet"},
		"at rest":                         {health: Ready, message: "all is well"},
		"at work":                         {change: conditions(is(ocv1.TypeReconciling, "True", "RollingOut", ""), is(ocv1.TypeReady, "Unknown", "RollingOut", "on its way")), health: Reconciling, message: "on its way"},
		"stuck":                           {change: conditions(unready, is(ocv1.TypeStalled, "True", "Blocked", "change the spec")), health: Stalled, message: "change the spec"},
		"not for long":                    {change: conditions(unready), health: NotReady, message: "it does not serve"},
		"not known":                       {change: conditions(is(ocv1.TypeReady, "Unknown", "AvailabilityUnknown", "not known")), health: Unknown, message: "not known"},
		"of another release":              {change: conditions(is(ocv1.TypeInstalled, "True", "Succeeded", "")), health: Unknown, message: "its status has no condition Ready"},
		"suspended":                       {change: conditions(ready, is(ocv1.TypeSuspended, "True", "UserRequested", "")), health: Suspended, message: "all is well"},
		"F6: suspended, with a problem":   {change: conditions(unready, is(ocv1.TypeSuspended, "True", "UserRequested", "")), health: NotReady, message: "it does not serve"},
		"F6: suspended, and not known":    {change: conditions(is(ocv1.TypeReady, "Unknown", "AvailabilityUnknown", "not known"), is(ocv1.TypeSuspended, "True", "UserRequested", "")), health: Unknown, message: "not known"},
		"F6: suspended before an install": {change: conditions(is(ocv1.TypeReady, "False", ocv1.ReasonSuspended, "nothing is installed"), is(ocv1.TypeSuspended, "True", "UserRequested", "")), health: Suspended, message: "nothing is installed"},
		"deleted":                         {change: func(e *ocv1.ClusterExtension) { e.DeletionTimestamp = &at }, health: Terminating, message: "all is well"},
		"deleted and stuck": {change: func(e *ocv1.ClusterExtension) {
			e.DeletionTimestamp = &at
			conditions(unready, is(ocv1.TypeStalled, "True", "DeletionBlocked", "in use"))(e)
		}, health: Stalled, message: "in use"},
		"waits for approval": {change: func(e *ocv1.ClusterExtension) {
			e.Status.Pending = &ocv1.PendingUpgrade{Bundle: ocv1.BundleMetadata{Version: "1.1.0"}, Since: at}
		}, health: Ready, message: "all is well", pending: "1.1.0 approval 2026-01-02"},
		"the operator refuses": {change: conditions(is(ocv1.TypeReady, "True", ocv1.ReasonUpgradeHeld, "not now")), health: Ready, message: "not now", pending: " operator"},
		"hostile text":         {change: conditions(is(ocv1.TypeReady, "True", "Succeeded", "a\x1b[2Jb\u202ec\nd")), health: Ready, message: "a [2Jb c d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 2}}
			ext.Status.ObservedGeneration = 2
			ext.Status.Conditions = []metav1.Condition{ready}
			if test.change != nil {
				test.change(ext)
			}
			row := RowOf(ext)
			pending := ""
			if row.Pending != "" {
				pending = row.Available + " " + row.Pending
			}
			if row.Since != nil {
				pending += " " + row.Since.Format(time.DateOnly)
			}
			if row.Health != test.health || row.Message != test.message || pending != test.pending {
				t.Errorf("got %+v, pending %q; want %+v", row, pending, test)
			}
		})
	}
}

func conditions(them ...metav1.Condition) func(*ocv1.ClusterExtension) {
	return func(ext *ocv1.ClusterExtension) { ext.Status.Conditions = them }
}

func TestBounds(t *testing.T) {
	t.Parallel()
	many := make([]ocv1.ClusterExtension, maxRows+2)
	for i := range many {
		many[i].Name = fmt.Sprintf("x%05d", len(many)-i)
	}
	last := &many[len(many)-1] // the first one by its name
	last.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Version: strings.Repeat("1", 2*maxValueBytes)}}
	last.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Message: strings.Repeat("m", 2*maxMessageBytes)}}
	table := Make(many)
	if len(table.Extensions) != maxRows || table.More != 2 || table.Extensions[0].Name != "x00001" {
		t.Errorf("got %d rows and %d more, the first is %q", len(table.Extensions), table.More, table.Extensions[0].Name)
	}
	row := table.Extensions[0]
	if len(row.Installed) > maxValueBytes || len(row.Message) > maxMessageBytes || row.Message == "" {
		t.Errorf("got %d bytes of a version and %d of a message", len(row.Installed), len(row.Message))
	}
}
