package monitoring_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/test/internal/child"
)

var update = flag.Bool("update", false, "write what there is to the golden files")

// stateGolden is what kube-state-metrics tells of a fleet. The extension that cannot be
// installed is not in there: after two minutes its status is another one.
const stateGolden = "testdata/kube-state-metrics.txt"

// notReady is of that extension, whatever the time.
var notReady = regexp.MustCompile(`(?m)^kube_clusterextension_status_condition\{.*name="` + missing + `",reason="Retrying",status="False",type="Ready"\} 1$`)

var ofMissing = regexp.MustCompile(`(?m)^.*name="` + missing + `".*\n`)

// changing are values that differ from one run to the next.
var changing = regexp.MustCompile(`(?m)^(kube_clustercatalog_last_unpacked_timestamp_seconds\{.*\}) .*$|(sha256:)[0-9a-f]{64}`)

// checkStateMetrics runs kube-state-metrics with our configuration, and with the rights of
// our role and no others.
func (f *fleet) checkStateMetrics(t *testing.T) {
	const reader = "state-reader"
	must(t, f.Kubectl(t.Context(), "apply", "-k", filepath.Join(f.Root(), "config", "kube-state-metrics")))
	must(t, f.Admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: reader}}))
	must(t, f.Admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "operator-controller-state-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: reader}},
	}))
	kubeconfig, err := f.Cluster.KubeconfigForServiceAccount(t.Context(), metav1.NamespaceDefault, reader)
	must(t, err)
	address := f.startStateMetrics(t, kubeconfig)
	want, err := os.ReadFile(stateGolden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	eventually(t, "what kube-state-metrics tells", func(ctx context.Context) error {
		all, err := readStateMetrics(ctx, "http://"+address+"/metrics")
		if err != nil {
			return err
		}
		if !notReady.Match(all) || !bytes.Contains(all, []byte("kube_clustercatalog_resolved_info")) {
			return fmt.Errorf("too little:\n%s", all)
		}
		got := ofMissing.ReplaceAll(all, nil)
		if *update {
			return os.WriteFile(stateGolden, got, 0o600)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

func (f *fleet) startStateMetrics(t *testing.T, kubeconfig string) (address string) {
	t.Helper()
	address, telemetry := freeAddress(t), freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	must(t, err)
	_, telemetryPort, err := net.SplitHostPort(telemetry)
	must(t, err)
	group := child.NewGroup()
	t.Cleanup(group.Close)
	process, err := group.Start(child.Command{
		Name: "kube-state-metrics", Path: tools(t).KubeStateMetrics, Dir: t.TempDir(), Log: filepath.Join(theLogs, "kube-state-metrics.log"),
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--custom-resource-state-only",
			"--custom-resource-state-config-file=" + filepath.Join(f.Root(), "config", "kube-state-metrics", "custom_resource_state.yaml"),
			"--host=" + host, "--port=" + port, "--telemetry-host=" + host, "--telemetry-port=" + telemetryPort,
		},
	})
	must(t, err)
	t.Cleanup(func() { process.Stop(10 * time.Second) })
	return address
}

// readStateMetrics gives the series that are of us, sorted, without what changes.
func readStateMetrics(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	var lines []string
	for scanner := bufio.NewScanner(bytes.NewReader(body)); scanner.Scan(); {
		if strings.HasPrefix(scanner.Text(), "kube_cluster") {
			lines = append(lines, scanner.Text())
		}
	}
	slices.Sort(lines)
	return changing.ReplaceAll([]byte(strings.Join(lines, "\n")+"\n"), []byte("$1$2 …")), nil
}
