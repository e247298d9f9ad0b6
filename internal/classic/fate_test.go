package classic

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Kinds in tests.
const (
	roleKind        = "Role.rbac.authorization.k8s.io"
	bindingKind     = "RoleBinding.rbac.authorization.k8s.io"
	clusterRoleKind = "ClusterRole.rbac.authorization.k8s.io"
	clusterBinding  = "ClusterRoleBinding.rbac.authorization.k8s.io"
	validating      = "ValidatingWebhookConfiguration.admissionregistration.k8s.io"
)

// TestFates has an object of everything that classic OLM leaves, found by each of the ways there
// are, and the same of another operator, which nothing becomes of.
func TestFates(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.csv().Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{Type: operatorsv1alpha1.ValidatingAdmissionWebhook, DeploymentName: testPackage}}
	c.install("other", "other", "other.v1")
	c.watch("target")
	made := role(t, testNamespace)
	c.Roles = []rbacv1.Role{made, role(t, "target", operatorsv1alpha1.CopiedLabelKey, testNamespace, object.LabelClassicOwnerNamespace, "target")}
	component := map[string]string{object.LabelClassicManaged: "true", componentOf(testPackage): ""}
	conditionRole := thing(roleKind, testNamespace, testCSV, map[string]string{object.LabelClassicManaged: "true"})
	conditionRole.Meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v2", Kind: "OperatorCondition", Name: testCSV, UID: c.Conditions[0].UID}}
	c.Objects = []Object{
		thing("ServiceAccount", testNamespace, testAccount, component),
		thing("Service", testNamespace, "sample-service", component),
		thing("Secret", testNamespace, "from-a-step", map[string]string{object.LabelClassicManaged: "true"}),
		thing("ConfigMap", testNamespace, "from-a-ref", map[string]string{object.LabelClassicManaged: "true"}),
		thing(clusterRoleKind, "", "from-the-bundle", map[string]string{object.LabelClassicManaged: "true", object.LabelClassicOwner: testCSV}),
		thing(clusterRoleKind, "", "not-in-the-bundle", map[string]string{object.LabelClassicManaged: "true", object.LabelClassicOwner: testCSV}),
		thing(validating, "", "sample.kb.io-x1y2z", labels(labelWebhookName, "sample.kb.io")),
		thing(roleKind, testNamespace, "sample-service-cert", component),
		thing(bindingKind, testNamespace, "sample-service-cert", map[string]string{object.LabelClassicManaged: "true"}), // as a rollback leaves it
		thing(bindingKind, "kube-system", "sample-service-auth-reader", map[string]string{object.LabelClassicManaged: "true"}),
		thing(clusterBinding, "", "sample-service-system:auth-delegator", labels()),
		thing("ConfigMap", testNamespace, "of-nobody", nil),
		thing("ConfigMap", testNamespace, "of-another", map[string]string{object.LabelClassicManaged: "true", componentOf("other"): ""}),
		thing(validating, "", "other.kb.io-x1y2z", map[string]string{object.LabelClassicOwner: "other.v1", object.LabelClassicOwnerNamespace: testNamespace, labelWebhookName: "other.kb.io"}),
		conditionRole,
	}
	c.aggregate()
	c.Copies = []Object{
		thing("ClusterServiceVersion.operators.coreos.com", "a", testCSV, map[string]string{operatorsv1alpha1.CopiedLabelKey: testNamespace}),
		thing("ClusterServiceVersion.operators.coreos.com", "a", testCSV, map[string]string{operatorsv1alpha1.CopiedLabelKey: "elsewhere"}),
	}
	c.OperatorObjects[0].Status.Components = &operatorsv1.Components{Refs: []operatorsv1.RichReference{
		{ObjectReference: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: testNamespace, Name: "from-a-ref"}},
	}}
	step := &operatorsv1alpha1.Step{Resolving: testCSV, Resource: operatorsv1alpha1.StepResource{Group: "example.com", Kind: "BundleSecret", Name: "from-a-step"}}
	shared := operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "shared"},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{testCSV, "other.v1"}},
		Status:     operatorsv1alpha1.InstallPlanStatus{Plan: []*operatorsv1alpha1.Step{step}},
	}
	own := *shared.DeepCopy()
	own.Name, own.Spec.ClusterServiceVersionNames, own.Status.Plan = "own", []string{testCSV}, nil
	c.Plans = []operatorsv1alpha1.InstallPlan{shared, own}

	op := operatorNamed(t, c, testPackage)
	rendered := []object.Key{
		thing("ServiceAccount", testNamespace, testAccount, nil).Key, thing("Service", testNamespace, "sample-service", nil).Key,
		thing("Secret", testNamespace, "from-a-step", nil).Key, thing("ConfigMap", testNamespace, "from-a-ref", nil).Key,
		thing(clusterRoleKind, "", "from-the-bundle", nil).Key, thing("CustomResourceDefinition.apiextensions.k8s.io", "", "samples.example.com", nil).Key,
		thing(validating, "", "sample.kb.io", nil).Key,
	}
	fates := op.Fates(rendered)
	want := map[string][]string{
		"adopted": {
			`ClusterRole "from-the-bundle"`, `ConfigMap "from-a-ref" in namespace "team"`, `CustomResourceDefinition "samples.example.com"`,
			`Secret "from-a-step" in namespace "team"`, `Service "sample-service" in namespace "team"`, `ServiceAccount "sample-manager" in namespace "team"`,
		},
		"deleted": {
			`ClusterRoleBinding "sample-service-system:auth-delegator"`,
			`ClusterServiceVersion "sample.v1.2.0" in namespace "a"`, `ClusterServiceVersion "sample.v1.2.0" in namespace "team"`,
			`InstallPlan "own" in namespace "team"`, `Operator "sample.team"`, `OperatorCondition "sample.v1.2.0" in namespace "team"`,
			`Role "` + made.Name + `" in namespace "target"`,
			`Role "sample-service-cert" in namespace "team"`, `Role "sample.v1.2.0" in namespace "team"`, `Role "` + made.Name + `" in namespace "team"`,
			`RoleBinding "sample-service-auth-reader" in namespace "kube-system"`, `RoleBinding "sample-service-cert" in namespace "team"`,
			`Subscription "sample" in namespace "team"`, `ValidatingWebhookConfiguration "sample.kb.io-x1y2z"`,
		},
		"stays": {`ClusterRole "not-in-the-bundle"`, `ClusterRole "samples.example.com-v1-admin"`},
	}
	got := map[string][]string{"adopted": texts(fates.Adopted), "deleted": texts(fates.Deleted), "stays": texts(fates.Stays)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	withCondition := op.Fates(append(rendered, thing("OperatorCondition.operators.coreos.com", testNamespace, testCSV, nil).Key))
	want["adopted"] = slices.Insert(want["adopted"], 3, `OperatorCondition "sample.v1.2.0" in namespace "team"`)
	want["deleted"] = slices.DeleteFunc(want["deleted"], func(text string) bool {
		return text == `OperatorCondition "sample.v1.2.0" in namespace "team"` || text == `Role "sample.v1.2.0" in namespace "team"`
	})
	got = map[string][]string{"adopted": texts(withCondition.Adopted), "deleted": texts(withCondition.Deleted), "stays": texts(withCondition.Stays)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("F70: with the OperatorCondition in the extension (-want +got)\n%s", diff)
	}
	for _, one := range append(fates.Deleted, fates.Adopted...) {
		if one.Meta.UID == "" && one.Key.Kind != "InstallPlan" {
			t.Errorf("%s has no UID by which it could be deleted", one.Key)
		}
	}
}

// Anybody can put the marks of an operator on objects of theirs: none of them is the operator's, be they as many as they
// like. Neither is what another operator has whose deployment has the same name.
func TestMarksOfTenants(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.csv().Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{Type: operatorsv1alpha1.ValidatingAdmissionWebhook, DeploymentName: testPackage}}
	c.watch("target")
	component := map[string]string{object.LabelClassicManaged: "true", componentOf(testPackage): ""}
	owned := thing("Secret", "tenant", "owned", nil)
	owned.Meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: testCSV, UID: c.csv().UID}}
	c.Objects = []Object{
		thing("ConfigMap", "tenant", "marked", component), owned,
		thing("ConfigMap", "target", "marked", component),
		thing("ConfigMap", testNamespace, "its-own", component),
	}
	c.Roles = []rbacv1.Role{role(t, "tenant", operatorsv1alpha1.CopiedLabelKey, testNamespace), role(t, "target", operatorsv1alpha1.CopiedLabelKey, testNamespace)}
	reader := func(name, namespace string) rbacv1.RoleBinding {
		return rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name), Labels: map[string]string{object.LabelClassicManaged: "true"}},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "manager"}},
		}
	}
	c.RoleBindings = []rbacv1.RoleBinding{reader("sample-service-auth-reader", "elsewhere")}
	c.OperatorObjects[0].Status.Components = &operatorsv1.Components{Refs: []operatorsv1.RichReference{
		{ObjectReference: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "tenant", Name: "marked"}},
	}}
	want := []string{`ConfigMap "its-own" in namespace "team"`, `Role "` + c.Roles[1].Name + `" in namespace "target"`}
	got := texts(operatorNamed(t, c, testPackage).Content)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	c.RoleBindings[0] = reader("sample-service-auth-reader", testNamespace)
	if got := texts(operatorNamed(t, c, testPackage).Fates(nil).Deleted); !slices.Contains(got, `RoleBinding "sample-service-auth-reader" in namespace "kube-system"`) {
		t.Errorf("deleted are %q, without what is its own", got)
	}
}

func texts(objects []Object) []string {
	var found []string
	for _, one := range objects {
		found = append(found, one.Key.String())
	}
	return found
}

// What a bundle has and classic OLM has made is of its operator, also if no InstallPlan says so
// any more; unless it says that it is of another one.
func TestClaim(t *testing.T) {
	t.Parallel()
	managed := map[string]string{object.LabelClassicManaged: "true"}
	const kind = "ConfigMap"
	for name, test := range map[string]struct {
		object Object
		want   bool
	}{
		"of classic OLM":      {thing(kind, testNamespace, "one", managed), true},
		"of nobody":           {thing(kind, testNamespace, "one", nil), false},
		"of another operator": {thing(kind, testNamespace, "one", map[string]string{object.LabelClassicManaged: "true", componentOf("other"): ""}), false},
		"of another version":  {thing(kind, testNamespace, "one", map[string]string{object.LabelClassicManaged: "true", object.LabelClassicOwner: "other.v1"}), false},
		"another one has it":  {thing(kind, testNamespace, "taken", managed), false},
	} {
		c := newCluster()
		c.install("other", "other", "other.v1")
		c.OperatorObjects = append(c.OperatorObjects, operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "other." + testNamespace}, Status: operatorsv1.OperatorStatus{
			Components: &operatorsv1.Components{Refs: []operatorsv1.RichReference{
				{ObjectReference: &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: testNamespace, Name: "taken"}},
			}},
		}})
		c.Objects = []Object{test.object}
		op := operatorNamed(t, c, testPackage)
		if got := c.Claim(op, test.object); got != test.want || len(op.Content) > 0 != test.want {
			t.Errorf("%s: got %v with %v", name, got, texts(op.Content))
		}
	}
}

// What stays of an object are the labels of people, and the rights of users.
func TestMarks(t *testing.T) {
	t.Parallel()
	meta := &metav1.ObjectMeta{
		Labels: labels("app", "sample", "rbac.authorization.k8s.io/aggregate-to-admin", "true", componentOf(testPackage), ""),
		Annotations: map[string]string{
			prefixAlongside + "0123": "team/sample.v1", "own": "1",
		},
	}
	want := []string{"olm.managed", "olm.owner", "olm.owner.kind", "olm.owner.namespace", "operators.coreos.com/sample.team"}
	if diff := cmp.Diff(want, LabelMarks(meta)); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{prefixAlongside + "0123"}, AnnotationMarks(meta)); diff != "" {
		t.Errorf("annotations (-want +got)\n%s", diff)
	}
}

// What names another operator is not taken over, also if it names this one.
func TestMarksOfOthers(t *testing.T) {
	t.Parallel()
	op := operatorNamed(t, newCluster(), testPackage)
	for name, test := range map[string]struct {
		labels map[string]string
		want   []string
	}{
		"its own":                {labels: labels(componentOf(testPackage), "")},
		"nobody's":               {labels: map[string]string{object.LabelClassicManaged: "true", object.LabelClassicOwner: ""}},
		"a component of another": {labels: labels(componentOf(testPackage), "", componentOf("other"), ""), want: []string{componentOf("other")}},
		"of another version":     {labels: map[string]string{object.LabelClassicOwner: "sample.v1.1.0", componentOf(testPackage): ""}, want: []string{object.LabelClassicOwner}},
		"of another namespace":   {labels: labels(object.LabelClassicOwnerNamespace, "elsewhere"), want: []string{object.LabelClassicOwner}},
	} {
		if diff := cmp.Diff(test.want, op.MarksOfOthers(test.labels)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
