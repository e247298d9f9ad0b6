package main

import ctrl "sigs.k8s.io/controller-runtime"

// releasePages gives back to the kernel the pages of the binary that are in memory. Nearly
// all of them were read by what runs once at the start, such as the registration of the
// types of Kubernetes, and are not read again; those that are come back from the file. A
// kernel that cannot do it keeps them.
func releasePages() {
	if err := pageOut(); err != nil {
		ctrl.Log.V(1).Info("pages of the binary that the start has read stay in memory", "reason", err.Error())
	}
}
