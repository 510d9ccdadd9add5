"""Recordings as bytes on disk: FORMAT.md says which. Written and read here, understood in `query`. No torch.

writer ─► rows, tensors, sealed ─► streams, segments, files     what a step adds, as bytes behind what is there
      ├─► limit: room, thinning, upkeep, ledger                 what goes, so that it fits into `max_bytes`
      └─► commits: journal, contents                            the line that makes it part of the recording
reader ─► commits: journal, contents, unnamed ─► checking       what is there, as far as it can be relied on
paths, description, membership, joining, resuming, vacancy      trials as folders: begun, joined, gone on with, left
disk: locking, maps, syncing                                    what the system does with files
"""
