import Foundation
import KeepsakeReplication
import KeepsakeStore

/// A folder as a cloud: reads what other devices put there, and writes what this one sends, both as complete segments.
///
/// The decisions of a cloud are made by `CloudAcceptance`, over a replica that all segments form together; so outbox,
/// cursor, staging and conflicts are those of the engine, as with a server. The folder adds when a segment counts
/// (`FolderReplica`), and that an exchange has its response when it is in the folder durably.
///
/// Used by one caller at a time. Every call blocks while it reads and writes.
final class FolderCloud {
  let layout: FolderLayout
  let container: ContainerID
  /// That of the segments.
  private let segmentContainer: ContainerID
  let options: FolderOptions
  let access: any FolderAccess
  let owner: FolderOwner
  let contents: ContentFolder
  /// Returns the device's own contents, in full; nil for what it doesn't have.
  let ownContent: (ContentHash) throws -> EncodedContent?

  struct Seen {
    var signature: FolderSignature
    /// Nil if the file is no complete segment of this container.
    var hash: SegmentHash?
  }
  /// The files in `state`, by name: each is read once, and again when it changes.
  private(set) var files: [String: Seen] = [:]
  /// The segments that were never read here, and whose bytes aren't on this device yet.
  private(set) var arriving: Set<String> = []
  /// The files that were never read here, and that can't be at present, though they are here.
  private(set) var unreadable: Set<String> = []
  /// Since when, and for how many of them, the device waits.
  private var patience: (since: Int64, files: Int)?
  /// The links of every segment that was ever read here.
  private(set) var links: [SegmentHash: StateSegment.Links] = [:]
  /// Segments that are in the folder at present, whatever their names.
  private(set) var present: Set<SegmentHash> = []
  /// What the snapshots among them name as replaced.
  private(set) var replacedByPresent: Set<SegmentHash> = []
  /// Segments that are read, and not applied yet.
  private(set) var waiting: [SegmentHash: StateSegment] = [:]
  private(set) var replica: FolderReplica?
  /// The number of this store's segments since its last snapshot.
  private var ownLength = 0
  /// Announced while there is no replica: 0 at first, and more than the device's seq when it has to start over.
  private var announced: UInt64 = 0
  /// Segments were removed, and what they alone needed wasn't yet.
  var isCollectionDue = false

  init(
    _ folder: FolderPlace, container: ContainerID, options: FolderOptions = FolderOptions(),
    ownContent: @escaping (ContentHash) throws -> EncodedContent?
  ) {
    layout = FolderLayout(folder.url)
    (access, owner) = (folder.access, folder.owner)
    self.container = container
    segmentContainer = folder.owner.container(ofSegmentsOf: container)
    self.options = options
    contents = ContentFolder(layout, by: access)
    self.ownContent = ownContent
  }

  // MARK: What a transport asks

  /// Stores what the device sends durably, and responds with what is new, as a server would.
  func exchange(_ request: ExchangeRequest, now: Int64) throws -> ExchangeResponse {
    var request = request
    // There is no bank: the offer gets no reply, and the engine stops asking.
    request.wallet = nil
    // A further page comes from the same replica, or from one that starts over.
    request.cursor.ahead = nil
    try look()
    // A device that starts over gets every change, including what it was assumed to have.
    if request.cursor.seq == 0, let replica, replica.start > 0 { try forget() }
    if replica == nil, !open(at: request.cursor) {
      // What it continues from may be among them.
      guard !waits(now) else { throw TransportFailure.stillArriving(layout.root) }
      return restart(now)
    }
    patience = nil
    try applyWaiting()
    guard var replica else { return restart(now) }

    var marks = ConstantMarks(mark: replica.mark)
    var next = FolderContainer(replica.memory, contents)
    var response = try CloudAcceptance.exchange(request, now: now, in: &next, using: &marks)
    guard !response.restart else { return response }
    let earlier = request.part.map { Array(replica.memory.items(of: $0.offer).prefix($0.number)) } ?? []
    let whole = request.joined(with: earlier)
    if response.more, case .accepted = response.outcome {
      // Until the device has all pages, it would send the same again. It fetches first.
      (request.cells, request.versions, request.contents, request.part) = ([], [], [], nil)
      next = FolderContainer(replica.memory, contents)
      response = try CloudAcceptance.exchange(request, now: now, in: &next, using: &marks)
    }
    if case .accepted = response.outcome {
      for content in next.arriving { try contents.put(content) }
      let segment = try write(
        StateSegment.Links(previous: replica.tip, seen: replica.seen { links[$0] }, replaces: []),
        cells: whole.cells, versions: FolderReplica.taken(whole.versions, in: next.memory))
      replica.wrote(segment, next.memory)
      self.replica = replica
      ownLength += 1
      if ownLength > options.segmentsBeforeSnapshot { writeSnapshot() }
      response.cursor = self.replica?.memory.position() ?? response.cursor
    } else if case .held = response.outcome {
      // Kept in memory only: after a restart of the process the device is asked for them again.
      replica.keepsOffers(of: next.memory)
      self.replica = replica
    }
    return response
  }

  func putContent(_ content: EncodedContent) throws {
    try checkOwner()
    try contents.put(content)
  }

  func content(_ hash: ContentHash) throws -> EncodedContent? {
    try checkOwner()
    return try contents.content(hash)
  }

  /// Looks at the folder, and returns how far its container has come; 0 until the first exchange.
  func poll() throws -> UInt64 {
    try look()
    if replica != nil { try applyWaiting() }
    return replica?.memory.position().seq ?? announced
  }

  private func restart(_ now: Int64) -> ExchangeResponse {
    ExchangeResponse(
      outcome: nil, restart: true, changes: [], contents: [], wallet: nil, cursor: .start, more: true,
      serverTimeMilliseconds: now)
  }

  /// Returns whether it may still help to wait for what is arriving. Some of it may never come: a device may have been
  /// lost before it sent what it had announced.
  private func waits(_ now: Int64) -> Bool {
    guard !arriving.isEmpty else {
      patience = nil
      return false
    }
    if let patience, arriving.count == patience.files, now >= patience.since {
      return now - patience.since < options.arrivalMilliseconds
    }
    patience = (now, arriving.count)
    return true
  }

  // MARK: Looking

  func checkOwner() throws(TransportFailure) { try owner.require(container, in: layout, by: access) }

  /// Reads segments that are new or changed. If this store's own chain isn't complete any more, the replica is
  /// discarded: the next exchange starts over.
  private func look() throws {
    try checkOwner()
    if try readSegments() { recordContents() }
    if let lost = replica, let tip = lost.tip, !isWhole(tip) {
      announced = lost.memory.position().seq + 1
      try forget()
    }
  }

  /// Discards the replica, and reads again what it contained.
  private func forget() throws {
    replica = nil
    (files, links, present, replacedByPresent, waiting) = ([:], [:], [], [], [:])
    _ = try readSegments()
    recordContents()
  }

  /// Reads new and changed segments; returns whether anything differs from the last look.
  private func readSegments() throws -> Bool {
    switch try access.item(at: layout.state) {
    case .file?, .other?: throw TransportFailure.folderBlocked(layout.state)
    case .folder?, .arriving?, .unlisted?, nil: break
    }
    let names = try access.names(in: layout.state) ?? []
    var changed = false
    var now: [String: Seen] = [:]
    (arriving, unreadable) = ([], [])
    var waitingBytes = waiting.values.reduce(0) { $0 + $1.byteCount }
    for name in names {
      let path = "\(layout.state)/\(name)"
      let signature: FolderSignature
      switch try access.item(at: path, known: files[name]?.signature) {
      case .file(let found)?: signature = found
      case .arriving?, .unlisted?:
        // What was read of it counts, though iCloud has removed its bytes since.
        if let known = files[name], known.hash != nil {
          now[name] = known
        } else {
          expect(name)
          access.fetch(path)
        }
        continue
      case .folder?, .other?, nil: continue
      }
      if let known = files[name], known.signature == signature {
        now[name] = known
        continue
      }
      changed = true
      let bytes = try? access.read(path, limit: FolderLimits.segmentBytes)
      guard bytes != nil || signature.size > FolderLimits.segmentBytes else {
        // One that can't be read, or goes meanwhile, must not keep the others away. It isn't recorded, so it is tried
        // again at each look.
        if let known = files[name], known.hash != nil {
          now[name] = known
        } else {
          unreadable.insert(name)
          if owner == .account { expect(name) }
        }
        continue
      }
      var seen = Seen(signature: signature)
      if let bytes, let segment = StateSegment(bytes), segment.container == segmentContainer {
        seen.hash = segment.hash
        if links.updateValue(segment.links, forKey: segment.hash) == nil {
          waiting[segment.hash] = segment
          waitingBytes += segment.byteCount
        }
        guard waitingBytes <= FolderLimits.waitingBytes else { throw TransportFailure.tooMuchWaiting(layout.state) }
      }
      now[name] = seen
    }
    // One that is gone is no change of another.
    changed = changed || now.count != files.count
    files = now
    return changed
  }

  /// What other names stand for is read when it is here; nothing waits for it.
  private func expect(_ name: String) { if SegmentHash(name) != nil { arriving.insert(name) } }

  private func recordContents() {
    present = Set(files.values.compactMap(\.hash))
    replacedByPresent = []
    for hash in present { replacedByPresent.formUnion(links[hash]?.replaces ?? []) }
  }

  private func applyWaiting() throws {
    guard var replica else { return }
    var isDone = waiting.isEmpty
    while !isDone {  // What a snapshot replaces may allow others to follow.
      let (applied, refused) = try replica.apply(waiting) { [contents, ownContent] hash throws(TransportFailure) in
        // What the device has needn't come from the folder. A damaged one does, as if it weren't here.
        if try contents.isComplete(hash) { return true }
        return (try? ownContent(hash)) ?? nil != nil
      }
      // The next round may fail.
      self.replica = replica
      for hash in applied + refused { waiting[hash] = nil }
      for hash in waiting.keys where replica.isIn(hash) { waiting[hash] = nil }
      isDone = applied.isEmpty || waiting.isEmpty
    }
  }

  // MARK: Chains

  /// Returns whether a segment and all that its store wrote before are in the folder, or in a snapshot that is.
  private func isWhole(_ tip: SegmentHash) -> Bool {
    var next: SegmentHash? = tip
    while let hash = next {
      if replacedByPresent.contains(hash) { return true }
      guard present.contains(hash), let links = links[hash] else { return false }
      if links.isSnapshot { return true }
      next = links.previous
    }
    return true
  }

  /// Returns the known segments of this store, the newest first, beyond snapshots too.
  func ownChain() -> [SegmentHash] {
    var chain: [SegmentHash] = []
    var next = replica?.tip
    while let hash = next, let links = links[hash] {
      chain.append(hash)
      next = links.previous
    }
    return chain
  }

  /// Opens the replica at the device's cursor; returns false if that isn't a position in this folder.
  private func open(at cursor: Cursor) -> Bool {
    guard cursor.seq > 0 else {
      replica = FolderReplica(container, startingAt: .start, tip: nil)
      ownLength = 0
      return true
    }
    guard cursor.epoch == Cursor.start.epoch, cursor.seq < Cursor.maximumSeq else { return false }
    var tip: SegmentHash?
    if cursor.mark != StateSegment.mark(ofReaderIn: container) {
      let isMarked = { (hash: SegmentHash) in StateSegment.mark(of: hash) == cursor.mark }
      guard let found = present.first(where: isMarked) ?? replacedByPresent.first(where: isMarked), isWhole(found)
      else { return false }
      tip = found
    }
    var replica = FolderReplica(container, startingAt: cursor, tip: tip)
    self.replica = replica
    let chain = ownChain()
    ownLength = chain.firstIndex { links[$0]?.isSnapshot == true } ?? chain.count
    let had = heldByDevice(chain).compactMap { waiting[$0] }.sorted { $0.hash < $1.hash }
    replica.applyQuietly(had)
    for segment in had { waiting[segment.hash] = nil }
    self.replica = replica
    return true
  }

  /// Returns what the device certainly has: what it wrote, what its snapshots replaced, and what it recorded as seen,
  /// with everything before that.
  private func heldByDevice(_ chain: [SegmentHash]) -> Set<SegmentHash> {
    var held: Set<SegmentHash> = []
    for own in chain {
      held.insert(own)
      held.formUnion(links[own]?.replaces ?? [])
      for seen in links[own]?.seen ?? [] {
        var next: SegmentHash? = seen
        while let hash = next, held.insert(hash).inserted {
          held.formUnion(links[hash]?.replaces ?? [])
          next = links[hash]?.previous
        }
      }
    }
    return held
  }

  // MARK: Writing

  private func write(_ links: StateSegment.Links, cells: [CellUpdate], versions: [VersionRecord]) throws -> StateSegment
  {
    let (segment, bytes) = try StateSegment.encoded(segmentContainer, links, cells: cells, versions: versions)
    guard bytes.count <= FolderLimits.segmentBytes else {
      throw TransportFailure(
        .rejected,
        "the changes sent together take \(bytes.count) bytes, but at most \(FolderLimits.segmentBytes) are allowed")
    }
    // What a snapshot replaces is removed: it has to be what every reader takes.
    guard !links.isSnapshot || StateSegment(bytes) != nil else {
      throw TransportFailure(.rejected, "what is in the folder can't be written as one snapshot")
    }
    // Contents were written since the last look, which may have taken long.
    try checkOwner()
    try access.makeFolder(layout.state)
    let path = layout.segment(segment.hash)
    try access.write(bytes, to: path)
    self.links[segment.hash] = segment.links
    if let signature = try access.signature(of: path) {
      files["\(segment.hash)"] = Seen(signature: signature, hash: segment.hash)
    }
    recordContents()
    return segment
  }

  /// Writes everything as one segment that replaces all that is applied. Nothing depends on it.
  private func writeSnapshot() {
    // However this ends, the next attempt comes after the same number of segments again.
    ownLength = 0
    guard var replica, !lacksContents(replica) else { return }
    let direct = replica.applied.keys.sorted()
    var named = Set(direct)
    var inherited: [SegmentHash] = []
    // The replaced segments of this store's own last snapshot come first, newest first; then those that others name.
    let last = ownChain().first { links[$0]?.isSnapshot == true }.flatMap { links[$0]?.replaces } ?? []
    for hash in last + replica.replaced.sorted() where named.insert(hash).inserted { inherited.append(hash) }
    let replaces = direct + inherited.prefix(max(0, min(FolderLimits.inherited, FolderLimits.replaced - direct.count)))
    guard replaces.count <= FolderLimits.replaced else { return }
    let (cells, versions) = replica.everything()
    do {
      let segment = try write(
        StateSegment.Links(previous: replica.tip, seen: [], replaces: replaces), cells: cells, versions: versions)
      replica.wrote(segment, replica.memory)
      self.replica = replica
    } catch {
      // A full disk, or too much for one file. What the device sent is in the folder already, and that has to be
      // reported.
    }
  }

  // MARK: Tidying up

  /// Removes files that aren't needed any more.
  func remove(_ names: [String]) throws {
    defer { recordContents() }
    for name in names {
      try access.remove("\(layout.state)/\(name)")
      files[name] = nil
    }
  }
}
