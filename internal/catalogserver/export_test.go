package catalogserver

// AwaitWakeup returns the name of the next catalog whose content has come, or will not.
func (r *Reconciler) AwaitWakeup() string { return (<-r.fetched).Object.GetName() }
