package object

import "errors"

// ErrOwnerGone says that an extension is being deleted, or that another one has its
// name by now. Nothing is written for it any more.
var ErrOwnerGone = errors.New("the ClusterExtension is being deleted or was replaced")
