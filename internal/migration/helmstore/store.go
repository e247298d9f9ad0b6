package helmstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Labels of Helm's Secrets, and their type.
const (
	labelName       = "name"
	labelOwner      = "owner"
	labelStatus     = "status"
	labelVersion    = "version"
	labelCreatedAt  = "createdAt"
	labelModifiedAt = "modifiedAt"

	ownerHelm  = "helm"
	secretType = corev1.SecretType("helm.sh/release.v1")
	prefix     = "sh.helm.release.v1."
	dataKey    = "release"
)

// LabelMovedTo is the label of the marker of a move. Its value is the name of the extension.
const LabelMovedTo = "olm.operatorframework.io/moved-to"

// Name identifies a release by its namespace and name.
type Name struct{ Namespace, Name string }

// String is NAMESPACE/NAME.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Revision is one revision of a release as Helm has recorded it.
type Revision struct {
	*release.Release

	// MovedTo is set in the marker of a move: the name of the extension.
	MovedTo string

	secret *corev1.Secret
}

// IsMarker reports whether the revision is the marker of a move, see [Releases.Mark].
func (r Revision) IsMarker() bool { return r.MovedTo != "" }

// Releases reads and writes the records of a cluster, with the credentials of its client.
type Releases struct {
	core corev1client.CoreV1Interface
	now  func() time.Time
}

// New makes no request.
func New(core corev1client.CoreV1Interface, now func() time.Time) *Releases {
	return &Releases{core: core, now: now}
}

// pageSize is the number of Secrets in one reply. Each can have a megabyte.
const pageSize = 50

// All returns the names of the releases in a namespace, or in all namespaces if it is empty, sorted.
func (r *Releases) All(ctx context.Context, namespace string) ([]Name, error) {
	options := metav1.ListOptions{
		LabelSelector: labels.Set{labelOwner: ownerHelm}.String(), FieldSelector: fields.OneTermEqualSelector("type", string(secretType)).String(),
		Limit: pageSize,
	}
	var names []Name
	for {
		list, err := r.core.Secrets(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the Secrets of Helm: %w", err)
		}
		for i := range list.Items {
			if secret := &list.Items[i]; secret.Labels[labelName] != "" {
				names = append(names, Name{Namespace: secret.Namespace, Name: secret.Labels[labelName]})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortFunc(names, func(a, b Name) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(names), nil
}

// NotFoundError is returned if there is no Secret with a record of a release.
type NotFoundError struct {
	Name Name

	// InConfigMaps is set if there are records in ConfigMaps.
	InConfigMaps bool
}

func (e *NotFoundError) Error() string {
	if e.InConfigMaps {
		return fmt.Sprintf("release %q in namespace %q is recorded in ConfigMaps, and only releases in Secrets can be moved: change to HELM_DRIVER=secret", e.Name.Name, e.Name.Namespace)
	}
	return fmt.Sprintf("there is no release %q in namespace %q: `helm list -A` prints the existing releases; releases that Helm records in a database cannot be moved", e.Name.Name, e.Name.Namespace)
}

// History returns the revisions of a release, oldest first. It fails with [*NotFoundError] if there are
// none.
func (r *Releases) History(ctx context.Context, name Name) ([]Revision, error) {
	selector := metav1.ListOptions{LabelSelector: labels.Set{labelOwner: ownerHelm, labelName: name.Name}.String()}
	list, err := r.core.Secrets(name.Namespace).List(ctx, selector)
	if err != nil {
		return nil, fmt.Errorf("listing the Secrets of release %q in namespace %q: %w", name.Name, name.Namespace, err)
	}
	var found []Revision
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.Type != secretType {
			continue
		}
		decoded, err := decode(secret.Data[dataKey])
		if err != nil {
			return nil, fmt.Errorf("reading Secret %q in namespace %q: %w", secret.Name, name.Namespace, err)
		}
		// A user who may write Secrets in the namespace can write any content.
		if want := nameOf(decoded); decoded.Name != name.Name || decoded.Namespace != name.Namespace || secret.Name != want {
			return nil, fmt.Errorf("reading Secret %q in namespace %q: it has the record of another release: %s, revision %d", secret.Name, secret.Namespace,
				excerpt.Quote(Name{Namespace: decoded.Namespace, Name: decoded.Name}.String()), decoded.Version)
		}
		decoded.Labels = ownLabels(secret.Labels)
		found = append(found, Revision{Release: decoded, MovedTo: secret.Labels[LabelMovedTo], secret: secret})
	}
	if len(found) == 0 {
		maps, err := r.core.ConfigMaps(name.Namespace).List(ctx, selector)
		return nil, &NotFoundError{Name: name, InConfigMaps: err == nil && len(maps.Items) > 0}
	}
	slices.SortFunc(found, func(a, b Revision) int { return a.Version - b.Version })
	return found, nil
}

// Mark adds a pending revision, so that Helm refuses to upgrade the release. The revision has no
// objects, so that helm uninstall deletes none. Mark fails if Helm has changed or deleted the revision since it was
// read, or has a newer one.
func (r *Releases) Mark(ctx context.Context, last Revision, extension string) error {
	live, err := r.core.Secrets(last.Namespace).Get(ctx, last.secret.Name, metav1.GetOptions{})
	if err == nil && (live.UID != last.secret.UID || live.ResourceVersion != last.secret.ResourceVersion) || apierrors.IsNotFound(err) {
		err = errors.New("the release was changed or deleted with Helm since it was checked: try again")
	}
	if err != nil {
		return fmt.Errorf("marking release %q in namespace %q as moved: %w", last.Name, last.Namespace, err)
	}
	marker := &release.Release{
		Name: last.Name, Namespace: last.Namespace, Version: last.Version + 1, Config: map[string]any{},
		Info: &release.Info{
			FirstDeployed: last.Info.FirstDeployed, LastDeployed: helmtime.Time{Time: r.now()}, Status: release.StatusPendingUpgrade,
			Description: fmt.Sprintf("moved to ClusterExtension %q: upgrade that, or `kubectl extension migrate helm rollback %s -n %s`", extension, last.Name, last.Namespace),
		},
	}
	if last.Chart != nil {
		marker.Chart = &chart.Chart{Metadata: last.Chart.Metadata}
	}
	secret, err := r.secretOf(marker)
	if err != nil {
		return err
	}
	secret.Labels[LabelMovedTo] = extension
	secret.Labels[labelCreatedAt] = strconv.FormatInt(r.now().Unix(), 10)
	if _, err := r.core.Secrets(last.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("marking release %q in namespace %q as moved: %w", last.Name, last.Namespace, err)
	}
	return nil
}

// Delete deletes revisions. Deleted revisions are ignored.
func (r *Releases) Delete(ctx context.Context, revisions ...Revision) error {
	for _, one := range revisions {
		err := r.core.Secrets(one.Namespace).Delete(ctx, one.secret.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(one.secret.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting Secret %q in namespace %q: %w", one.secret.Name, one.Namespace, err)
		}
	}
	return nil
}

// Replace replaces the marker of a move with a deployed revision.
func (r *Releases) Replace(ctx context.Context, marker Revision, by *release.Release) error {
	if !marker.IsMarker() {
		return fmt.Errorf("internal error: revision %d is not the marker", marker.Version)
	}
	by.Version = marker.Version
	secret, err := r.secretOf(by)
	if err != nil {
		return err
	}
	secret.ResourceVersion = marker.secret.ResourceVersion
	secret.Labels[labelCreatedAt] = marker.secret.Labels[labelCreatedAt]
	if _, err := r.core.Secrets(marker.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("recording revision %d of release %q in namespace %q: %w", by.Version, marker.Name, marker.Namespace, err)
	}
	return nil
}

// Supersede sets the status of a revision to superseded.
func (r *Releases) Supersede(ctx context.Context, one Revision) error {
	if one.Info.Status == release.StatusSuperseded {
		return nil
	}
	changed := *one.Release
	info := *one.Info
	info.Status, changed.Info = release.StatusSuperseded, &info
	secret, err := r.secretOf(&changed)
	if err != nil {
		return err
	}
	secret.ResourceVersion = one.secret.ResourceVersion
	secret.Labels[labelCreatedAt] = one.secret.Labels[labelCreatedAt]
	if _, err := r.core.Secrets(one.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("recording that revision %d of release %q in namespace %q is superseded: %w", one.Version, one.Name, one.Namespace, err)
	}
	return nil
}

func (r *Releases) secretOf(one *release.Release) (*corev1.Secret, error) {
	data, err := encode(one)
	if err != nil {
		return nil, err
	}
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: nameOf(one), Labels: map[string]string{}},
		Type:       secretType,
		Data:       map[string][]byte{dataKey: data},
	}
	maps.Copy(made.Labels, one.Labels)
	made.Labels[labelName], made.Labels[labelOwner] = one.Name, ownerHelm
	made.Labels[labelStatus], made.Labels[labelVersion] = one.Info.Status.String(), strconv.Itoa(one.Version)
	made.Labels[labelModifiedAt] = strconv.FormatInt(r.now().Unix(), 10)
	return made, nil
}

// nameOf returns the name of the Secret of a revision.
func nameOf(one *release.Release) string {
	return fmt.Sprintf("%s%s.v%d", prefix, one.Name, one.Version)
}

// ownLabels returns the labels that a user gave a release.
func ownLabels(all map[string]string) map[string]string {
	own := map[string]string{}
	for key, value := range all {
		switch key {
		case labelName, labelOwner, labelStatus, labelVersion, labelCreatedAt, labelModifiedAt, LabelMovedTo:
		default:
			own[key] = value
		}
	}
	return own
}
