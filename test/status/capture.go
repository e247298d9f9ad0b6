package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/test/judge"
)

// Capture is one state of an object, as a watch told of it.
type Capture struct {
	judge.Reading

	// At is when the watch told of it.
	At time.Time

	// Row is what kubectl get prints: cells by the names of their columns, without
	// those that are shown with -o wide only.
	Row map[string]string
}

// Version of the bundle that the status says is installed.
func (c Capture) Version() string {
	version, _, _ := unstructured.NestedString(c.Object.Object, "status", "install", "bundle", "version")
	return version
}

func (c Capture) String() string {
	if c.Object == nil {
		return "none"
	}
	ready, progressing := c.Condition("Ready"), c.Condition("Progressing")
	return fmt.Sprintf("generation %d at %s: %s; Ready=%s %s %q; Progressing=%s %s %.200q",
		c.Object.GetGeneration(), c.At.Format("15:04:05.000"), c.Kstatus(), ready.Status, ready.Reason, ready.Message,
		progressing.Status, progressing.Reason, progressing.Message)
}
