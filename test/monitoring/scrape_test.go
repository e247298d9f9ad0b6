package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/monitoring"
)

// scrapeInterval makes minutes of scrapes seconds.
const scrapeInterval = time.Second

// TestFleet has Prometheus scrape a controller as the manifests say, and
// kube-state-metrics read what it has written.
//
//nolint:paralleltest // so that its cluster does not take the time of other tests
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	fleet := startFleet(t)
	t.Run("Prometheus", func(t *testing.T) {
		prometheus := fleet.startPrometheus(t)
		checkTargets(t, prometheus)
		fleet.checkPage(t, prometheus)
		checkSeries(t, prometheus)
		checkData(t, prometheus)
		checkRules(t, prometheus)
	})
	t.Run("kube-state-metrics", fleet.checkStateMetrics)
}

// startPrometheus runs it with the settings of the ServiceMonitor, and returns when it has
// scraped each replica three times.
func (f *fleet) startPrometheus(t *testing.T) *monitoring.Prometheus {
	t.Helper()
	must(t, f.Kubectl(t.Context(), "apply", "-f", filepath.Join(f.Root(), "config", "prometheus", "scraper.yaml")))
	endpoint := manifests(t).Monitor.Spec.Endpoints[0]
	credentials, ca := endpoint.Authorization.Credentials, endpoint.TLSConfig.CA.Secret
	prometheus, err := monitoring.Start(t.Context(), monitoring.Options{
		Program: tools(t).Prometheus, Folder: t.TempDir(), Rules: rulesFile(t), Interval: scrapeInterval,
		Scrape: &monitoring.Scrape{
			Endpoint: endpoint, Job: "operator-controller-service", Addresses: f.metrics, CA: f.secret(t, ca), Token: f.secret(t, credentials),
		},
	})
	must(t, err)
	t.Cleanup(prometheus.Stop)
	eventually(t, "scrapes", func(ctx context.Context) error {
		value, _, _, err := prometheus.Query(ctx, "count(sum_over_time(up[1m]) >= 3) == 2", time.Now())
		if err == nil && isEmpty(value) {
			targets, err := prometheus.Targets(ctx)
			return errors.Join(err, fmt.Errorf("there are too few yet, of the targets %+v", targets.Active))
		}
		return err
	})
	return prometheus
}

// secret reads what a ServiceMonitor names, when it is there.
func (f *fleet) secret(t *testing.T, selector *corev1.SecretKeySelector) []byte {
	t.Helper()
	var value []byte
	eventually(t, "Secret "+selector.Name, func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := f.Admin.Get(ctx, client.ObjectKey{Namespace: environment.SystemNamespace, Name: selector.Name}, secret); err != nil {
			return err
		}
		if value = secret.Data[selector.Key]; len(value) == 0 {
			return fmt.Errorf("it has no %s", selector.Key)
		}
		return nil
	})
	return value
}

// checkTargets has both replicas scraped as it is meant, and one of them lead.
func checkTargets(t *testing.T, prometheus *monitoring.Prometheus) {
	t.Helper()
	targets, err := prometheus.Targets(t.Context())
	must(t, err)
	for _, target := range targets.Active {
		if target.Health != prometheusv1.HealthGood || !strings.HasPrefix(target.ScrapeURL, "https://") {
			t.Errorf("target %+v", target)
		}
	}
	for query, want := range map[string]string{
		"count(up == 1)":                                                 "2",
		"count(leader_election_master_status)":                           "2",
		"sum(leader_election_master_status)":                             "1",
		"count(scrape_samples_scraped < 1200)":                           "2", // each controller of the manager has some of its own
		"count(operator_controller_extension_condition{type=\"Ready\"})": "3",
	} {
		value, _, _, err := prometheus.Query(t.Context(), query, time.Now())
		must(t, err)
		if vector, ok := value.(model.Vector); !ok || len(vector) != 1 || vector[0].Value.String() != want {
			t.Errorf("%s is %v, want %s", query, value, want)
		}
	}
}

// allQueries are those of alerts and of dashboards.
func allQueries(t *testing.T) []monitoring.Query {
	t.Helper()
	queries := manifests(t).Queries()
	for _, dashboard := range dashboards(t) {
		queries = append(queries, dashboard.Queries(hooked)...)
	}
	return queries
}

// checkSeries holds what queries ask for against what there is: for each selector there are
// series, and each label by which they are grouped is one that some of them have, apart from
// how they were scraped. A cluster has no label, unless somebody gives it one.
func checkSeries(t *testing.T, prometheus *monitoring.Prometheus) {
	t.Helper()
	for _, query := range allQueries(t) {
		expression, err := prometheus.Parse(t.Context(), query.Text)
		must(t, err)
		known := model.LabelSet{"cluster": ""}
		for _, selector := range expression.Selectors {
			series, _, _, err := prometheus.Series(t.Context(), []string{selector.String()}, time.Now().Add(-time.Hour), time.Now())
			must(t, err)
			if len(series) == 0 {
				t.Errorf("%s: there are no series %s", query.Where, selector)
			}
			for _, labels := range series {
				known = known.Merge(labels)
			}
		}
		for _, ofTarget := range ofTargets {
			delete(known, model.LabelName(ofTarget))
		}
		for _, label := range expression.Labels {
			if _, ok := known[model.LabelName(label)]; !ok {
				t.Errorf("%s: no series has label %q", query.Where, label)
			}
		}
	}
}

// checkData has each query of each panel come to something.
func checkData(t *testing.T, prometheus *monitoring.Prometheus) {
	t.Helper()
	for _, dashboard := range dashboards(t) {
		for _, query := range dashboard.Queries(hooked) {
			value, warnings, _, err := prometheus.Query(t.Context(), query.Text, time.Now())
			must(t, err)
			if isEmpty(value) || len(warnings) > 0 {
				t.Errorf("%s shows %v, with warnings %q: %s", query.Where, value, warnings, query.Text)
			}
		}
	}
}

func isEmpty(value model.Value) bool {
	vector, ok := value.(model.Vector)
	return ok && len(vector) == 0
}

// checkRules has all rules evaluated, and none fire but for those that wait for what the
// fleet has.
func checkRules(t *testing.T, prometheus *monitoring.Prometheus) {
	t.Helper()
	var pending []string
	eventually(t, "evaluation of all rules", func(ctx context.Context) error {
		groups, err := prometheus.Rules(ctx, nil)
		if err != nil {
			return err
		}
		pending = nil
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				alert, ok := rule.(prometheusv1.AlertingRule)
				if !ok || alert.Health != prometheusv1.RuleHealthGood {
					return fmt.Errorf("%+v was not evaluated", rule)
				}
				for _, active := range alert.Alerts {
					pending = append(pending, fmt.Sprintf("%s %s of %s%s", active.State, alert.Name, active.Labels["extension"], active.Labels["catalog"]))
				}
			}
		}
		return nil
	})
	slices.Sort(pending)
	// The extension that is missing is stalled after two minutes, if the test takes so long.
	pending = slices.DeleteFunc(pending, func(alert string) bool {
		return alert == "pending OperatorControllerExtensionStalled of "+missing
	})
	want := []string{"pending OperatorControllerExtensionNotReady of " + missing, "pending OperatorControllerUpgradeHeld of " + vetoed}
	if !slices.Equal(pending, want) {
		t.Errorf("alerts are %q, want %q", pending, want)
	}
}
