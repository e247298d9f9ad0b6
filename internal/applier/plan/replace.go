package plan

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// replaceTimeout bounds the deletion and creation of an object, which nothing else ends.
const replaceTimeout = 30 * time.Second

// replaceIfImmutable is for a change that was refused. If that is because fields cannot be
// changed, and the user has agreed to it for the kind, the object is deleted and
// created again. It fails with [*preflight.ImmutableError] where nobody has agreed.
//
// Whether the cluster would take an object like the wanted one is asked before the
// deletion, in a dry run as in earnest. A process that dies between the two leaves no
// object, which the next pass creates.
func (w writer) replaceIfImmutable(ctx context.Context, s *Step, refusal error) (*unstructured.Unstructured, error) {
	immutable := preflight.Immutable(s.Key.GroupKind, s.Live, refusal)
	if immutable == nil {
		return nil, refusal
	}
	if !immutable.MayReplace(w.owner.Replaceable) && !s.inherits() {
		return nil, immutable
	}
	s.immutable = immutable.Fields
	if err := w.dryRunAnother(ctx, s); err != nil {
		return nil, fmt.Errorf("creating it again, as %s cannot be changed: %w", strings.Join(s.immutable, ", "), err)
	}
	if !w.isDryRun() {
		// The extension may be deleted between the two requests. It stays until this pass has
		// ended. So the object is created again, and orphaned with all others.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), replaceTimeout)
		defer cancel()
	}
	// Not for an extension that is being deleted: the object is part of what stays.
	if err := w.askAgain(ctx); err != nil {
		return nil, err
	}
	if err := w.deleteOwned(ctx, s); err != nil {
		return nil, fmt.Errorf("deleting it, as %s cannot be changed: %w", strings.Join(s.immutable, ", "), err)
	}
	if w.isDryRun() {
		return s.Live, nil
	}
	replaced := &object.Difference{Replaced: true, Fields: s.immutable}
	made, err := w.create(ctx, s)
	if err == nil {
		s.written = replaced
		return made, nil
	}
	// It is the one change that nothing else would tell of.
	log.FromContext(ctx).Info("deleted", "object", s.Key.Logged(), "fields", replaced.LoggedFields())
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("it is created again when it is gone, for which it waits for finalizers [%s]: %w",
			strings.Join(s.Live.GetFinalizers(), ", "), err)
	}
	return nil, err
}

// dryRunAnother has the API server judge an object that is like the wanted one, beside
// the live one: under another name, and without what no two can have.
func (w writer) dryRunAnother(ctx context.Context, s *Step) error {
	other := s.Object.DeepCopy()
	// A name that is made up by the API server would make another text of each refusal.
	other.SetName(object.Shortened(other.GetName()+"-anew", validation.DNS1123LabelMaxLength))
	if s.Key.Group == corev1.GroupName && s.Key.Kind == "Service" {
		withoutAddresses(other)
	}
	options := metav1.CreateOptions{FieldManager: object.FieldManager, DryRun: []string{metav1.DryRunAll}}
	_, err := resourceOf(w.client, s.Item).Create(ctx, other, options)
	if isInconclusive(err) || isBeside(err) {
		return nil
	}
	return err
}

// besides are the words in which the API server refuses an object because of another
// one: the live one, most likely, which goes first.
var besides = regexp.MustCompile(`exceeded quota|already marked as default`)

func isBeside(err error) bool { return apierrors.IsForbidden(err) && besides.MatchString(err.Error()) }

// withoutAddresses drops what the API server gives to one Service only.
func withoutAddresses(service *unstructured.Unstructured) {
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		if text := object.TextIn(service, "spec", field); text != corev1.ClusterIPNone {
			unstructured.RemoveNestedField(service.Object, "spec", field)
		}
	}
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, port := range ports {
		if port, ok := port.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(service.Object, ports, "spec", "ports") // spec is a map, as it has ports
	}
}

// Replacements returns a note for each object that the plan deletes and creates again, or deletes before it writes
// another object. It includes only objects that the dry runs have found.
func (p *Plan) Replacements() []string {
	var notes []string
	for i := range p.Steps {
		if s := &p.Steps[i]; len(s.immutable) > 0 {
			notes = append(notes, fmt.Sprintf("%s is deleted and created again, as %s cannot be changed", s.Key, strings.Join(s.immutable, ", ")))
		}
		for _, other := range p.Steps[i].blockers {
			notes = append(notes, fmt.Sprintf("%s is deleted before %s is written, as it blocks that", other, p.Steps[i].Key))
		}
	}
	return notes
}
