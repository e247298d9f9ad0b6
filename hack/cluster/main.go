// Command cluster is the control plane of a local cluster as one program: each component
// under its own name, which is the last element of the path that the program was called by.
//
// The components share most of their packages. One program links them once, and one build
// with the library versions of the controller compiles them once.
//
// With the tag envtest, the programs that envtest provides are left out.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// components are the entry points by name. Each returns when its component has ended.
var components = map[string]func(){
	"etcdutl":                 restoreSnapshots,
	"kube-controller-manager": func() { os.Exit(cli.Run(controllermanager.NewControllerManagerCommand())) },
	"kube-scheduler":          func() { os.Exit(cli.Run(scheduler.NewSchedulerCommand())) },
	"kwok":                    runKWOK,
}

func main() {
	name := filepath.Base(os.Args[0])
	run, ok := components[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "Error: %q is not a component of the cluster\n", name)
		os.Exit(2)
	}
	run()
}

// restoreSnapshots runs "etcdutl snapshot", the only command of etcdutl that tests use.
func restoreSnapshots() {
	root := &cobra.Command{Use: "etcdutl"}
	root.AddCommand(etcdutl.NewSnapshotCommand())
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}
