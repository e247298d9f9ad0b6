package classic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func recorded(t *testing.T) Record {
	t.Helper()
	named := func(name string, uid types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ops", Name: name, UID: uid}
	}
	op := &Operator{
		Name: types.NamespacedName{Namespace: "ops", Name: "garden"},
		Subscription: &operatorsv1alpha1.Subscription{
			ObjectMeta: named("garden", "s"), Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "garden"},
		},
		CSV: &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: named("garden.v1", "c")},
	}
	op.Subscription.Annotations = map[string]string{"team": "green", lastApplied: "{}"}
	of := func(group, kind, name string, uid types.UID) Object {
		one := Object{Meta: named(name, uid)}
		one.Key.Group, one.Key.Kind, one.Key.Namespace, one.Key.Name = group, kind, "ops", name
		return one
	}
	op.Copies = []Object{of(object.ClassicGroup, "ClusterServiceVersion", "garden.v1", "copy")}
	fates := Fates{
		Adopted: []Object{of("apps", "Deployment", "garden", "d")},
		Deleted: append([]Object{
			of(object.ClassicGroup, "Subscription", "garden", "s"), of(object.ClassicGroup, "ClusterServiceVersion", "garden.v1", "c"),
			of("rbac.authorization.k8s.io", "Role", "garden.v1-abc", "r"), of(object.ClassicGroup, "InstallPlan", "install-1", "p"),
		}, op.Copies...),
		Stays: []Object{of("", "ConfigMap", "left", "l")},
	}
	created := op.csvKey()
	created.Group, created.Kind, created.Name = "rbac.authorization.k8s.io", "Role", "garden-xyz"
	record, err := op.Record("once", Quiet, fates, []object.Key{created})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// extensionWith is the extension of the operator that was recorded, with such a record.
func extensionWith(text string) *ocv1.ClusterExtension {
	ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "garden", Annotations: map[string]string{
		AnnotationRecord: text, ocv1.MigratedFromSubscriptionAnnotation: "ops/garden",
	}}}
	ext.Spec.Namespace = "ops"
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{PackageName: "garden"}
	return ext
}

// TestForgedRecords: who may edit an extension may write its record, and has nothing done by it to what is not of the
// operator that the extension comes after.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(*Record){
		"another Subscription":     func(r *Record) { r.Subscription.Name = "other" },
		"a Subscription of others": func(r *Record) { r.Subscription.Namespace = "victim" },
		"no Subscription":          func(r *Record) { r.Subscription.Group, r.Subscription.Kind = "apps", "Deployment" },
		"a CSV of others":          func(r *Record) { r.CSV.Namespace = "victim" },
		"no CSV":                   func(r *Record) { r.CSV.Kind = "OperatorGroup" },
		"any label":                func(r *Record) { r.Label = "operators.coreos.com/other.ops" },
		"no mode":                  func(r *Record) { r.Mode = "" },
		"a Namespace is deleted": func(r *Record) {
			r.Deleted = append(r.Deleted, Ref{Reference: object.Reference{Kind: "Namespace", Name: "victim"}, UID: "n"})
		},
		"a definition is deleted": func(r *Record) {
			r.Deleted = append(r.Deleted, Ref{Reference: object.ReferenceTo(object.Key{GroupKind: object.DefinitionKind, Name: "gardens.test"})})
		},
		"a plan of others is deleted": func(r *Record) { r.Deleted[1].Namespace = "victim" },
		"an Operator of others": func(r *Record) {
			r.Deleted[1] = Ref{Reference: object.Reference{Group: object.ClassicGroup, Kind: "Operator", Name: "other.ops"}}
		},
		"a Subscription is deleted": func(r *Record) { r.Deleted[1].Kind = "Subscription" },
		"an OperatorCondition of others": func(r *Record) {
			r.Deleted[1] = Ref{Reference: object.Reference{Group: object.ClassicGroup, Kind: "OperatorCondition", Namespace: "ops", Name: "other.v1"}}
		},
	} {
		record := recorded(t)
		forge(&record)
		text, err := record.Text()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := RecordOf(extensionWith(text)); err == nil || !strings.Contains(err.Error(), "no move has written it") {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

// TestDeletedAreTheOperators: names and UIDs are what somebody has written into a record. Only marks of the operator have
// an object deleted, and those of another one keep it from being changed.
func TestDeletedAreTheOperators(t *testing.T) {
	t.Parallel()
	record := recorded(t)
	owned := func(csv, namespace string) map[string]string {
		return map[string]string{object.LabelClassicManaged: "true", object.LabelClassicOwner: csv, object.LabelClassicOwnerNamespace: namespace, object.LabelClassicOwnerKind: "ClusterServiceVersion"}
	}
	for name, test := range map[string]struct {
		object         Object
		isIts, another bool
	}{
		"by its owner":             {thing(clusterRoleKind, "", "one", owned("garden.v1", "ops")), true, false},
		"by the owner's name":      {thing(clusterRoleKind, "", "one", map[string]string{object.LabelClassicOwner: "garden.v1"}), true, false},
		"a component":              {thing(clusterRoleKind, "", "one", map[string]string{record.Label: ""}), true, false},
		"a copy":                   {thing(roleKind, "target", "one", map[string]string{object.LabelClassicOwner: "garden.v1", object.LabelClassicOwnerNamespace: "target", operatorsv1alpha1.CopiedLabelKey: "ops"}), true, false},
		"of the condition":         {thing(roleKind, "ops", "garden.v1", nil), true, false},
		"of its server":            {thing(bindingKind, "kube-system", "garden-service-auth-reader", map[string]string{object.LabelClassicManaged: "true"}), true, false},
		"of nobody":                {thing(clusterRoleKind, "", "cluster-admin", nil), false, false},
		"of the cluster":           {thing(bindingKind, "kube-system", "garden-service-auth-reader", nil), false, false},
		"of another one":           {thing(clusterRoleKind, "", "one", owned("other.v1", "ops")), false, true},
		"of another namespace":     {thing(clusterRoleKind, "", "one", owned("garden.v1", "victim")), false, true},
		"a component of another":   {thing(clusterRoleKind, "", "one", map[string]string{componentOf("other"): ""}), false, true},
		"in its namespace, anyone": {thing(roleKind, "ops", "one", nil), false, false},
	} {
		if got := record.Has(RefOf(test.object), &test.object.Meta); got != test.isIts {
			t.Errorf("%s: is to be deleted: %t", name, got)
		}
		if got := record.IsOfAnother(&test.object.Meta); got != test.another {
			t.Errorf("%s: is of another: %t", name, got)
		}
	}
}

// TestRecord: what manages the operator goes in steps of its own, and is not among what is deleted afterwards; copies are
// as many as there are namespaces, and are found again by their label.
func TestRecord(t *testing.T) {
	t.Parallel()
	record := recorded(t)
	rights := Ref{Reference: object.Reference{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: "ops", Name: "garden.v1-abc"}, UID: "r"}
	want := []Ref{rights, {Reference: object.Reference{Group: object.ClassicGroup, Kind: "InstallPlan", Namespace: "ops", Name: "install-1"}, UID: "p"}}
	if diff := cmp.Diff(want, record.Deleted); diff != "" {
		t.Errorf("deleted: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "green"}, record.Annotations); diff != "" {
		t.Errorf("annotations of the Subscription: -want +got\n%s", diff)
	}
	if record.Label != "operators.coreos.com/garden.ops" || record.Subscription.UID != "s" || record.CSV.UID != "c" {
		t.Errorf("record = %+v", record)
	}
	text, err := record.Text()
	if err != nil {
		t.Fatal(err)
	}
	if ref := `"csv":{"group":"operators.coreos.com","kind":"ClusterServiceVersion","namespace":"ops","name":"garden.v1","uid":"c"}`; !strings.Contains(text, ref) {
		t.Errorf("%s does not have %s", text, ref)
	}
	read, err := RecordOf(extensionWith(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record, *read); diff != "" {
		t.Errorf("read again: -want +got\n%s", diff)
	}
	finished := record.Finished()
	if diff := cmp.Diff([]Ref{rights}, finished.Deleted); diff != "" || !finished.Done || len(finished.Created) != 1 || len(finished.Adopted) != 1 || len(finished.Stays) > 0 {
		t.Errorf("finished: %+v", finished)
	}
}

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	record := recorded(t)
	record.Stays = make([]Ref, 10_000)
	if _, err := record.Text(); err == nil || !strings.Contains(err.Error(), "more objects than can be noted") {
		t.Errorf("err = %v", err)
	}
}

// TestMoveThatHasNotEnded is said to be one, also when the Subscription is gone by then.
func TestMoveThatHasNotEnded(t *testing.T) {
	t.Parallel()
	begun, err := recorded(t).Text()
	if err != nil {
		t.Fatal(err)
	}
	done, err := recorded(t).Finished().Text()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]State{begun: Conflict, done: AlreadyMigrated, "": AlreadyMigrated, "damaged": Conflict} {
		ext := extensionWith(text)
		exam := Examination{Operator: &Operator{Name: types.NamespacedName{Namespace: "ops", Name: "garden"}, Extension: ext}}
		if got := exam.Verdict().State; got != want {
			t.Errorf("%.20q: %s, want %s", text, got, want)
		}
	}
}

// TestModes: the finalizer of a ClusterServiceVersion would switch conversion off, and one mode leaves it in place.
func TestModes(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.csv().Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{Type: operatorsv1alpha1.ConversionWebhook, DeploymentName: testPackage}}
	converting, other := operatorNamed(t, c, testPackage), operatorNamed(t, newCluster(), testPackage)
	for _, mode := range []Mode{Quiet, Live, Strip} {
		if problem := mode.Problem(converting); (problem != "") != (mode == Strip) {
			t.Errorf("%s: %q", mode, problem)
		}
		if problem := mode.Problem(other); problem != "" {
			t.Errorf("%s: %q", mode, problem)
		}
	}
}
