// Package hub fetches published models from a server that speaks the API of the Hugging Face hub.
//
// A *repository* (OWNER/NAME) has *revisions*: branches, tags and commits. Hub.Resolve turns a revision into a
// *snapshot*: the commit and its files with their digests. Hub.Open reads a file of a snapshot, and File.Verify
// compares what was read with the digest. HF_ENDPOINT names another server, HF_TOKEN, HF_TOKEN_PATH or HF_HOME a token,
// and HF_HUB_OFFLINE forbids requests.
package hub
