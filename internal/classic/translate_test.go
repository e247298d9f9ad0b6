package classic

import (
	gocmp "cmp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// noConfig is a configuration without keys.
const noConfig = "none"

func TestTranslate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Cluster)
		choice Choice

		// want changes the extension of an operator without specialities. The default of config is
		// operatorConditions alone.
		want    func(*ocv1.ClusterExtension)
		config  string
		dropped int
	}{
		"nothing to say": {},
		"names that are chosen": {
			choice: Choice{Name: "mine", ServiceAccount: "account", Catalog: "community"},
			want: func(ext *ocv1.ClusterExtension) {
				ext.Name, ext.Spec.ServiceAccount.Name = "mine", "account"
				ext.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: "community"}}
			},
		},
		"G5: the ServiceAccount of the OperatorGroup": {
			change: func(c *Cluster) { c.Groups[0].Spec.ServiceAccountName = "tenant" },
			choice: Choice{ServiceAccount: "account"},
			want:   func(ext *ocv1.ClusterExtension) { ext.Spec.ServiceAccount.Name = "tenant" },
		},
		"G6: one namespace": {change: func(c *Cluster) { c.watch("a") }, config: `{"operatorConditions":true,"watchNamespace":"a"}`},
		"several namespaces": {
			change: func(c *Cluster) { c.watch("b", "a"); c.supportsOnly(operatorsv1alpha1.InstallModeTypeMultiNamespace) },
			config: `{"operatorConditions":true,"watchNamespaces":["a","b"]}`,
		},
		"one namespace of a bundle for several": {
			change: func(c *Cluster) { c.watch("a"); c.supportsOnly(operatorsv1alpha1.InstallModeTypeMultiNamespace) },
			config: `{"operatorConditions":true,"watchNamespaces":["a"]}`,
		},
		"Manual": {
			change: func(c *Cluster) { c.subscription().Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual },
			want:   func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.UpgradeApproval = ocv1.UpgradeApprovalManual },
		},
		"the default channel": {
			change: func(c *Cluster) { c.subscription().Spec.Channel = "" }, choice: Choice{DefaultChannel: "fast"},
			want: func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.Channels = []string{"fast"} },
		},
		"the version of the ClusterServiceVersion, where no property has it": {
			change: func(c *Cluster) {
				c.csv().Annotations = nil
				c.csv().Spec.Version.Major = 2
			},
			want: func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.Version = "2.2.0" },
		},
		"a configuration": {
			change: func(c *Cluster) {
				c.subscription().Spec.StartingCSV = testCSV
				c.Groups[0].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
				c.subscription().Spec.Config = &operatorsv1alpha1.SubscriptionConfig{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, NodeSelector: map[string]string{"os": "linux"},
					Env: []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				}
			},
			config:  `{"deploymentConfig":{"env":[{"name":"LEVEL","value":"debug"}],"nodeSelector":{"os":"linux"},"tolerations":[{"operator":"Exists"}]},"operatorConditions":true}`,
			dropped: 2,
		},
		"a proxy that classic OLM has set": {
			change: func(c *Cluster) {
				deployment := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testPackage, UID: "deployment", Labels: labels()}}
				deployment.Spec.Template.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{
					{Name: "OWN", Value: "1"}, {Name: "HTTP_PROXY", Value: "http://proxy"}, {Name: "NO_PROXY", Value: "here"}, {Name: "OPERATOR_CONDITION_NAME", Value: testCSV},
				}}}
				c.Deployments = []appsv1.Deployment{deployment}
				c.subscription().Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "NO_PROXY", Value: "there"}}}
			},
			config: `{"deploymentConfig":{"env":[{"name":"NO_PROXY","value":"there"},{"name":"HTTP_PROXY","value":"http://proxy"}]},"operatorConditions":true}`,
		},
		"rights of users": {change: func(c *Cluster) { c.aggregate() }, config: `{"aggregatedClusterRoles":true,"operatorConditions":true}`},
		"rights of users, by an account that somebody has bounded": {
			change: func(c *Cluster) { c.aggregate(); c.Groups[0].Spec.ServiceAccountName = "tenant" },
			want:   func(ext *ocv1.ClusterExtension) { ext.Spec.ServiceAccount.Name = "tenant" }, dropped: 1,
		},
		"F70: no OperatorCondition, as of an early OLM v0": {change: func(c *Cluster) { c.Conditions = nil }, config: noConfig},
		"F70: an OperatorCondition, and nothing that runs": {
			change: func(c *Cluster) { c.csv().Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil }, config: noConfig,
		},
		"F70: an OperatorCondition that is in use": {change: func(c *Cluster) { c.Conditions[0].Spec.Overrides = conditionFalse }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			if test.change != nil {
				test.change(c)
			}
			got, err := operatorNamed(t, c, testPackage).Translate(test.choice)
			if err != nil {
				t.Fatal(err)
			}
			want := &ocv1.ClusterExtension{
				TypeMeta:   metav1.TypeMeta{APIVersion: ocv1.GroupVersion.String(), Kind: ocv1.ClusterExtensionKind},
				ObjectMeta: metav1.ObjectMeta{Name: testPackage, Annotations: got.Extension.Annotations},
				Spec: ocv1.ClusterExtensionSpec{
					Namespace: testNamespace, ServiceAccount: ocv1.ServiceAccountReference{Name: "sample-installer"}, Suspend: true,
					Source: ocv1.SourceConfig{SourceType: ocv1.SourceTypeCatalog, Catalog: &ocv1.CatalogFilter{
						PackageName: testPackage, Version: "1.2.0", Channels: []string{"stable"},
					}},
				},
			}
			if test.want != nil {
				test.want(want)
			}
			var config string
			if got.Extension.Spec.Config != nil {
				config = string(got.Extension.Spec.Config.Inline.Raw)
			}
			if want := gocmp.Or(test.config, `{"operatorConditions":true}`); config != strings.TrimPrefix(want, noConfig) {
				t.Errorf("configuration: got %s, want %s", config, want)
			}
			got.Extension.Spec.Config = nil
			if diff := cmp.Diff(want, got.Extension); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(got.Dropped) != test.dropped {
				t.Errorf("dropped: %q", got.Dropped)
			}
		})
	}
}

// aggregate adds a role by which users have rights to the API of the operator.
func (c *Cluster) aggregate() {
	definition := thing("CustomResourceDefinition.apiextensions.k8s.io", "", "samples.example.com", map[string]string{
		object.LabelClassicManaged: "true", componentOf(testPackage): "",
	})
	admin := thing("ClusterRole.rbac.authorization.k8s.io", "", "samples.example.com-v1-admin", map[string]string{
		object.LabelClassicManaged: "true", prefixAggregate + "0123456789abcdef-admin": "true", "rbac.authorization.k8s.io/aggregate-to-admin": "true",
	})
	admin.Meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apiextensions.k8s.io/v1", Kind: "customresourcedefinition", Name: definition.Meta.Name, UID: definition.Meta.UID}}
	c.Objects = append(c.Objects, definition, admin)
}

// What the extension was made from can be made again, and what it becomes is what it was.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.subscription().Spec.StartingCSV = testCSV
	translation, err := operatorNamed(t, c, testPackage).Translate(Choice{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		ocv1.MigratedFromSubscriptionAnnotation: "team/sample",
		AnnotationSubscription:                  `{"source":"community","sourceNamespace":"olm","name":"sample","channel":"stable","startingCSV":"sample.v1.2.0","installPlanApproval":"Automatic"}`,
		AnnotationGroup:                         `{}`,
	}
	if diff := cmp.Diff(want, translation.Extension.Annotations); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	relaxed := Relaxed(translation.Extension)
	if relaxed.Spec.Suspend || relaxed.Spec.Source.Catalog.Version != "" || !translation.Extension.Spec.Suspend {
		t.Errorf("relaxed: %v", relaxed.Spec)
	}
	if from, isMigrated := relaxed.MigratedFrom(); !isMigrated || from.String() != "team/sample" {
		t.Errorf("migrated from %v", from)
	}
	for _, wrong := range []string{"", "sample", "/sample", "team/", "a/b/c"} {
		relaxed.Annotations = map[string]string{ocv1.MigratedFromSubscriptionAnnotation: wrong}
		if from, isMigrated := relaxed.MigratedFrom(); isMigrated {
			t.Errorf("%q is taken for %v", wrong, from)
		}
	}
}

// What has no single OperatorGroup, no Subscription or nothing installed is no extension.
func TestNoTranslation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Cluster){
		"no group":             func(c *Cluster) { c.Groups = nil },
		"nothing is installed": func(c *Cluster) { c.subscription().Status.InstalledCSV = "" },
		"no Subscription": func(c *Cluster) {
			c.Subscriptions = nil
			c.Extensions = []ocv1.ClusterExtension{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{ocv1.MigratedFromSubscriptionAnnotation: "team/sample"}}}}
		},
	} {
		c := newCluster()
		change(c)
		if _, err := operatorNamed(t, c, testPackage).Translate(Choice{}); err == nil {
			t.Errorf("%s: it is translated", name)
		}
	}
}
