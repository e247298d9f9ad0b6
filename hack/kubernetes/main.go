// Command kubernetes is the API server, the controller manager and the scheduler of another
// minor version of Kubernetes than hack/cluster, as one program: each component under its own
// name, which is the last element of the path that the program was called by.
//
// go.mod pins the oldest supported minor version. Another FILE.mod pins another one; the list is
// in test/programs.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // time zones of CronJobs

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "Error: %q is not a component of Kubernetes\n", name)
		os.Exit(2)
	}
}
