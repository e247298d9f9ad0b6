package classic

import (
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Names of the operator that tests change.
const (
	testNamespace = "team"
	testPackage   = "sample"
	testCSV       = "sample.v1.2.0"
	testAccount   = "sample-manager"
)

// newCluster is one on which an operator is installed that watches all namespaces, and nothing
// stands against its move.
func newCluster() *Cluster {
	c := &Cluster{
		Sources: []operatorsv1alpha1.CatalogSource{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: "registry.test/community:v1"},
		}},
		Groups: []operatorsv1.OperatorGroup{{
			ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "group", UID: "group"},
			Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{""}},
		}},
		Conditions:      []operatorsv2.OperatorCondition{{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testCSV, UID: "condition"}}},
		OperatorObjects: []operatorsv1.Operator{{ObjectMeta: metav1.ObjectMeta{Name: testPackage + "." + testNamespace, UID: "component"}}},
	}
	c.install(testPackage, testPackage, testCSV)
	return c
}

// install adds a Subscription of a package, and what it has installed.
func (c *Cluster) install(name, pkg, csv string) {
	c.Subscriptions = append(c.Subscriptions, operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: types.UID("subscription-" + name)},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: pkg, Channel: "stable", CatalogSource: "community", CatalogSourceNamespace: "olm",
			InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic,
		},
		Status: operatorsv1alpha1.SubscriptionStatus{InstalledCSV: csv, CurrentCSV: csv, State: operatorsv1alpha1.SubscriptionStateAtLatest},
	})
	strategy := operatorsv1alpha1.StrategyDetailsDeployment{
		DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{Name: pkg, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ServiceAccountName: pkg + "-manager", Containers: []corev1.Container{{Name: "manager", Env: []corev1.EnvVar{{Name: "OWN", Value: "1"}}}},
		}}}}},
		Permissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: pkg + "-manager", Rules: leaderElection()}},
	}
	made := operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: csv, UID: types.UID(csv), Annotations: map[string]string{
			annotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.2.0"}}]}`,
		}},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			Version:         version.OperatorVersion{Version: semver.MustParse("1.2.0")},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{StrategySpec: strategy},
			CustomResourceDefinitions: operatorsv1alpha1.CustomResourceDefinitions{Owned: []operatorsv1alpha1.CRDDescription{
				{Name: pkg + "s.example.com", Version: "v1", Kind: "Sample"},
			}},
		},
		Status: operatorsv1alpha1.ClusterServiceVersionStatus{Phase: operatorsv1alpha1.CSVPhaseSucceeded},
	}
	for _, mode := range []operatorsv1alpha1.InstallModeType{
		operatorsv1alpha1.InstallModeTypeAllNamespaces, operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
	} {
		made.Spec.InstallModes = append(made.Spec.InstallModes, operatorsv1alpha1.InstallMode{Type: mode, Supported: true})
	}
	c.CSVs = append(c.CSVs, made)
}

// csv and subscription are those of the operator that tests change.
func (c *Cluster) csv() *operatorsv1alpha1.ClusterServiceVersion { return &c.CSVs[0] }

func (c *Cluster) subscription() *operatorsv1alpha1.Subscription { return &c.Subscriptions[0] }

// supportsOnly leaves the bundle one install mode.
func (c *Cluster) supportsOnly(mode operatorsv1alpha1.InstallModeType) {
	c.csv().Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: mode, Supported: true}}
}

func (c *Cluster) watch(namespaces ...string) {
	c.Groups[0].Spec.TargetNamespaces, c.Groups[0].Status.Namespaces = namespaces, namespaces
}

// operatorNamed is the operator of a Subscription.
func operatorNamed(tb testing.TB, c *Cluster, name string) *Operator {
	tb.Helper()
	for _, op := range c.Operators() {
		if op.Name.Namespace == testNamespace && op.Name.Name == name {
			return &op
		}
	}
	tb.Fatalf("there is no operator %q", name)
	return nil
}

// labels are those by which classic OLM knows what it has made for the operator.
func labels(more ...string) map[string]string {
	found := map[string]string{
		object.LabelClassicManaged: "true", object.LabelClassicOwner: testCSV, object.LabelClassicOwnerNamespace: testNamespace, object.LabelClassicOwnerKind: operatorsv1alpha1.ClusterServiceVersionKind,
	}
	for i := 0; i+1 < len(more); i += 2 {
		found[more[i]] = more[i+1]
	}
	return found
}

// thing is an object of a kind of core, or of the group before a slash.
func thing(kind, namespace, name string, labels map[string]string) Object {
	return Object{
		Key:  object.Key{GroupKind: schema.ParseGroupKind(kind), Namespace: namespace, Name: name},
		Meta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(kind + namespace + name), Labels: labels},
	}
}

// role is a Role of the operator as classic OLM makes it.
func role(tb testing.TB, namespace string, more ...string) rbacv1.Role {
	tb.Helper()
	name, err := RoleName(testCSV, operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: testAccount, Rules: leaderElection()})
	if err != nil {
		tb.Fatal(err)
	}
	hash, err := RulesHash(leaderElection())
	if err != nil {
		tb.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("role-" + namespace), Labels: labels(append(more, labelRightsHash, hash)...)}
	return rbacv1.Role{ObjectMeta: meta, Rules: leaderElection()}
}

// componentOf is the label of the components of a package.
func componentOf(pkg string) string {
	return object.Predecessor{Namespace: testNamespace, Package: pkg}.ComponentLabel()
}
