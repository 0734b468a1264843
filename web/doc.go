// Package web serves the page, the API and the metrics of a run or a cluster by HTTP. It is
// not for use outside Egret; the API is.
//
//	 Source --Sample, once a second--> watch --+--> /api/v1/live, each who looks
//	(a run, or any node of a cluster)    |     +--> History, one hour
//	    ^  ^                             v
//	    |  +--- Tap, Errors, Oldest, Letters, Act, when asked --- Server <--- Listener <--- browsers, programs
//	    +------------------------------------------------------------- metrics
//
//	GET  /                                          the page
//	GET  /api/v1/me                                 Me: what the one who asks may do
//	POST /api/v1/login                              {"token": "..."}: Me, and a cookie
//	POST /api/v1/logout                             Me, and the cookie is forgotten
//	GET  /api/v1/overview                           view.Overview
//	GET  /api/v1/live?topology=T                    server-sent events: overview, and of T detail and point
//	GET  /api/v1/topologies/{topology}              view.Detail
//	GET  /api/v1/topologies/{topology}/history      []view.Point  ?since=
//	GET  /api/v1/topologies/{topology}/errors       []view.Error, the latest first
//	GET  /api/v1/topologies/{topology}/open         []view.Tree, the oldest first  ?n=
//	GET  /api/v1/topologies/{topology}/letters      []view.Letter  ?component= &n=
//	POST /api/v1/topologies/{topology}/letters      {"do": "replay" or "drop", "ids": [...]}: view.Effect
//	GET  /api/v1/topologies/{topology}/tap          server-sent events, or lines of JSON: view.Tapped  ?component= &stream= &where= &most=
//	POST /api/v1/actions                            view.Action: view.Effect
//	GET  /api/v1/openapi.json                       all of this for programs
//	GET  /metrics  /healthz  /readyz  /debug/pprof/
//
// An error is {"error": {"code": "...", "text": "..."}} with a fitting status.
//
// A [Server] asks nobody who he is. A [Listener] has a door: what changes something is a POST,
// and passes it only from who may act, and never because a page of another origin said so.
//
// Who looks live gets the newest moment when he has taken the one before, and is told how
// many were left out. Nobody queues for anybody, so a slow browser costs nothing but its place.
package web
