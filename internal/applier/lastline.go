package applier

import (
	"bytes"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/podlog"
)

// How much is read of a log, and told of it, in bytes.
const (
	maxLogTail = 4096
	maxLogLine = 200
)

// logTimeout is how long a log may take: the kubelet is asked for it, and may not answer.
const logTimeout = 5 * time.Second

// lastLine is the last line that a hook has logged, without what looks like a secret: whoever may read
// the status need not be one who may read logs. It is empty if it cannot be had.
func (a *Applier) lastLine(ctx context.Context, owner object.Owner, live *unstructured.Unstructured) string {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	client, err := impersonation.As(a.clients, owner.Account(), corev1client.NewForConfigAndClient)
	if err != nil {
		return ""
	}
	pods := client.Pods(live.GetNamespace())
	pod, err := podlog.Of(ctx, client.RESTClient(), live)
	if err != nil || pod == nil {
		return ""
	}
	text, err := podlog.Tail(ctx, pods, pod.Name, podlog.Failed(pod), 1, maxLogTail)
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n")) // whoever has the log may send more than was asked for
	return excerpt.Line(excerpt.Scrub(string(lines[len(lines)-1])), maxLogLine)
}
