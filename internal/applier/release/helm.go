package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// Content is the content of an extension as Helm asks for it.
type Content interface {
	// Objects are those of the revision, with what the cluster has of them.
	Objects() []Object

	// Write creates and changes them, and deletes what the revision has dropped.
	Write(ctx context.Context) error

	// LastApplied are the fingerprints of the objects as they were written, but for those
	// that are not to be remembered.
	LastApplied() map[object.Key]object.Fingerprint

	// Ran are the Jobs of the revision that were created, by it or by an earlier one, and that the cluster
	// deletes after they have finished; nil if the revision has no Jobs.
	Ran() object.Ran
}

// Object is an object of a revision. Live is nil if the cluster has none.
type Object struct {
	object.Item

	Live *unstructured.Unstructured
}

// Operation is one install or upgrade.
type Operation struct {
	history  *History
	revision installation.Revision
	chart    *chart.Chart
	hooks    []hook.Hook

	// labels are those of the record.
	labels map[string]string
}

// NewOperation wraps the objects of a revision and its hooks for Helm, which tells them apart by
// their annotations. Annotations go into the metadata of the chart.
func (h *History) NewOperation(revision installation.Revision, objects []*unstructured.Unstructured, hooks []hook.Hook, annotations map[string]string) (*Operation, error) {
	chart, err := chartOf(slices.Concat(objects, hook.Objects(hooks)), annotations)
	if err != nil {
		return nil, err
	}
	return &Operation{history: h, revision: revision, chart: chart, hooks: hooks}, nil
}

// Run hands the operation to Helm. Helm stores a pending record, asks for the write, and
// then marks the record as deployed, or as failed if the write fails half-way. The next
// operation goes on from there. The record stays pending if hooks before the content have not all
// succeeded: with [*installation.HookUnderwayError] and [*installation.HookFailedError].
func (o *Operation) Run(ctx context.Context, content Content) error {
	o.labels = labelsOf(o.revision)
	var err error
	if o.labels[labelHooks], err = o.history.firstProgress(ctx, o.revision, o.hooks); err != nil {
		return err
	}
	// A process that dies later has not noted which Jobs it has created.
	if o.labels[labelRan], err = encodeRan(content.Ran()); err != nil {
		return err
	}
	// When its context ends, Helm returns without waiting for what it has started. So it
	// gets one that does not end. The engine and the driver end with ctx, and Helm with them.
	helmCtx := context.WithoutCancel(ctx)
	driver := &storageDriver{ctx: ctx, history: o.history, content: content}
	content = pausing{Content: content, driver: driver}
	config := &action.Configuration{
		Releases:     storage.Init(driver),
		KubeClient:   &engine{ctx: ctx, content: content},
		Capabilities: chartutil.DefaultCapabilities,
		Log:          func(string, ...any) {},
	}
	if err := o.act(helmCtx, config); err != nil {
		return err
	}
	return driver.failed
}

// pausing tells the driver of hooks that have not all succeeded.
type pausing struct {
	Content

	driver *storageDriver
}

// Write implements [Content].
func (p pausing) Write(ctx context.Context) error {
	err := p.Content.Write(ctx)
	p.driver.paused = installation.IsHook(err)
	return err
}

func (o *Operation) act(ctx context.Context, config *action.Configuration) error {
	name := object.ReleaseName(o.history.Owner().Name)
	if len(o.history.entries) == 0 {
		install := action.NewInstall(config)
		install.ReleaseName = name
		install.Namespace = o.history.Owner().Namespace
		install.Labels = o.labels
		install.DisableHooks = true
		install.DisableOpenAPIValidation = true
		// Ownership is decided by the plan, more strictly than Helm does.
		install.TakeOwnership = true
		_, err := install.RunWithContext(ctx, o.chart, map[string]any{})
		return err
	}
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace = o.history.Owner().Namespace
	upgrade.Labels = o.labels
	upgrade.MaxHistory = maxHistory
	upgrade.DisableHooks = true
	upgrade.DisableOpenAPIValidation = true
	upgrade.TakeOwnership = true
	_, err := upgrade.RunWithContext(ctx, name, o.chart, map[string]any{})
	return err
}

// chartOf wraps objects for Helm. An object is a file of the chart, which Helm
// never reads as a template; the template beside it does no more than include
// the file. So text such as "{{ }}" inside an object stays what it is.
//
// Objects that could not be read back from a record are refused.
func chartOf(objects []*unstructured.Unstructured, annotations map[string]string) (*chart.Chart, error) {
	result := &chart.Chart{Metadata: &chart.Metadata{Annotations: annotations}}
	bounds := jsonBounds{values: maxManifestValues, depth: maxManifestDepth}
	named := map[string]bool{}
	for _, object := range objects {
		data, err := encoded(object, &bounds)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		name := "object-" + hex.EncodeToString(sum[:8]) + ".json"
		if named[name] {
			continue // a hook that is there twice
		}
		named[name] = true
		result.Files = append(result.Files, &chart.File{Name: name, Data: data})
		result.Templates = append(result.Templates, &chart.File{
			Name: path.Join("templates", name),
			Data: []byte(fmt.Sprintf("{{ .Files.Get %q }}", name)),
		})
	}
	return result, nil
}

// encoded returns an object as JSON that [objectsOf] reads. The bounds apply to the whole manifest.
func encoded(object *unstructured.Unstructured, bounds *jsonBounds) ([]byte, error) {
	data, err := json.Marshal(object.Object)
	if err == nil {
		err = bounds.check(data)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return data, nil
}
