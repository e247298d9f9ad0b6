package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	synced    = "Synced"
	outOfSync = "OutOfSync"
)

// comparison is what is wanted beside what is on the cluster. The lists have an item for
// each object, in one order; the target is nil if the object is not wanted any more, and
// the live one if it is not there.
type comparison struct {
	revision string
	result   sync.ReconciliationResult
	diffs    *diff.DiffResultList
	// health of each live object; nil if there is no check for its kind.
	health []*health.HealthStatus
}

// operation is a sync that may take several steps.
type operation struct {
	revision  string
	startedAt metav1.Time
	phase     common.OperationPhase
	message   string
	results   []common.ResourceSyncResult
}

// revision stands for that of Git: it changes with what is wanted.
func revision(targets []*unstructured.Unstructured) string {
	text, _ := json.Marshal(targets) // was decoded from text
	return fmt.Sprintf("%x", sha256.Sum256(text))[:12]
}

func (c *comparison) isSynced() bool {
	for i := range c.result.Target {
		if c.syncStatus(i) != synced {
			return false
		}
	}
	return true
}

func (c *comparison) syncStatus(i int) string {
	if c.result.Target[i] == nil || c.result.Live[i] == nil || c.diffs.Diffs[i].Modified {
		return outOfSync
	}
	return synced
}

// worst is the health of the Application: that of the object that is worst off.
func (c *comparison) worst() health.HealthStatusCode {
	worst := health.HealthStatusHealthy
	for i, told := range c.health {
		code := health.HealthStatusHealthy
		switch {
		case c.result.Live[i] == nil:
			code = health.HealthStatusMissing
		case told != nil:
			code = told.Status
		}
		if health.IsWorse(worst, code) {
			worst = code
		}
	}
	return worst
}

// status is that of the Application, with the fields of Argo CD that are known here, as
// JSON has them. What differs is told with its difference, for whoever looks for a cause.
func (c *comparison) status(running *operation) map[string]any {
	status := map[string]any{
		"sync":   map[string]any{"status": outOfSync, "revision": c.revision},
		"health": map[string]any{"status": string(c.worst())},
	}
	if c.isSynced() {
		status["sync"] = map[string]any{"status": synced, "revision": c.revision}
	}
	var resources []any
	for i := range c.result.Target {
		resources = append(resources, c.resource(i))
	}
	sort.Slice(resources, func(i, j int) bool { return fmt.Sprint(resources[i]) < fmt.Sprint(resources[j]) })
	if len(resources) > 0 {
		status["resources"] = resources
	}
	if running != nil {
		status["operationState"] = running.status()
	}
	return status
}

func (c *comparison) resource(i int) map[string]any {
	object := c.result.Live[i]
	if object == nil {
		object = c.result.Target[i]
	}
	key := kube.GetResourceKey(object)
	resource := map[string]any{"group": key.Group, "kind": key.Kind, "namespace": key.Namespace, "name": key.Name, "status": c.syncStatus(i)}
	if c.health[i] != nil {
		resource["health"] = map[string]any{"status": string(c.health[i].Status), "message": c.health[i].Message}
	}
	if changed := c.diffs.Diffs[i]; changed.Modified && c.result.Live[i] != nil && c.result.Target[i] != nil {
		resource["liveState"], resource["predictedState"] = string(changed.NormalizedLive), string(changed.PredictedLive)
	}
	return resource
}

func (o *operation) status() map[string]any {
	results := make([]any, 0, len(o.results))
	for _, result := range o.results {
		results = append(results, map[string]any{
			"kind": result.ResourceKey.Kind, "namespace": result.ResourceKey.Namespace, "name": result.ResourceKey.Name,
			"status": string(result.Status), "hookPhase": string(result.HookPhase), "message": result.Message,
		})
	}
	return map[string]any{
		"phase": string(o.phase), "message": o.message, "syncResult": map[string]any{"revision": o.revision, "resources": results},
	}
}
