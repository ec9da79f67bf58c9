/// A content that has to be in the cloud before its version can be offered.
struct PlannedUpload: Sendable {
  var hash: ContentHash
  var version: VersionRecord
  var index: Int
  /// Bytes on the wire.
  var bytes: Int
  /// The encoded content, if it was just encoded.
  var content: EncodedContent?
  var depth: Int
  /// Plain bytes of the content, and of all contents of the version that have to be uploaded.
  var length: Int
  var lengthInAll = 0
}

/// Decides what of the outbox can be sent, and which contents have to be uploaded before the rest can.
///
/// It keeps only what saves work: the sizes of contents that it encoded before, and which of them the cloud needs in
/// full.
struct UploadPlanner: Sendable {
  /// Only one content with more plain bytes than this is encoded in a step, because the game can't commit meanwhile.
  static let largeContentBytes = 4 << 20

  /// A content that doesn't fit into an exchange.
  private struct LargeContent {
    var bytes: Int
    /// A content being uploaded that this one will be a small delta of.
    var waitsFor: ContentHash?
  }

  private let inlineBytes: Int
  private let maximumDepth: Int
  /// Contents to be sent without a base, because the cloud lacked the one that they had.
  private var full: Set<ContentHash> = []
  /// What is known of contents that are too large to be sent inside an exchange, so that they aren't encoded only to
  /// find that out again.
  private var large: [ContentHash: LargeContent] = [:]
  /// This step has encoded a large content.
  private var hasEncodedLarge = false
  /// Something is left to encode that this step had no time for.
  private(set) var hasPostponed = false

  init(_ options: DeviceEngine.Options) { (inlineBytes, maximumDepth) = (options.inlineBytes, options.maximumDepth) }

  /// Begins a step, which has time to encode another large content.
  mutating func beginStep() { (hasEncodedLarge, hasPostponed) = (false, false) }

  /// Forgets all sizes: nothing waits any more, or it waits for another cloud.
  mutating func forgetSizes() { large = [:] }

  /// Forgets a content's size on the wire, which has to be found out again.
  mutating func forgetSize(of hash: ContentHash) { large[hash] = nil }

  /// Sends a content in full, because the cloud can't decode a delta of it.
  mutating func sendInFull(_ hash: ContentHash) { full.insert(hash) }

  /// Forgets what was known of a content, which is in the cloud by now.
  mutating func uploaded(_ hash: ContentHash) {
    full.remove(hash)
    large[hash] = nil
  }

  /// Forgets which contents had to be sent in full, because the cloud accepted them inside an exchange.
  mutating func accepted(_ contents: [EncodedContent]) { full.subtract(contents.map(\.hash)) }

  // MARK: Groups

  /// What waits to be sent.
  struct Candidates {
    /// The groups that may be sent, oldest first.
    var groups: [OutboxGroup]
    /// The records of their versions, as far as they were read; of an offer, all.
    var known: [VersionID: VersionRecord]
    /// Those of an offer that arrived from the cloud since it began: their contents are there.
    var arrived: Set<VersionID> = []
    /// Set if everything that waits is offered together: its groups, as far as one offer holds them.
    var offer: [OutboxGroup]?
    var limits: RequestLimits
    /// Contents being uploaded.
    var uploading: Set<ContentHash>
  }

  enum Outcome {
    case plan(SendingPlan)
    /// A version needs a content that is damaged or gone on this device.
    case lost(VersionID, ContentHash)
  }

  /// One look at the groups that can be sent, without those that are known to wait.
  private struct Round {
    var plan: SendingPlan
    /// Bytes that are left for contents inside the exchange.
    var room: Int
    /// Contents that are sent inside the exchange, and contents that won't be in the cloud in time for it.
    var placed: Set<ContentHash> = []
    var unplaced: Set<ContentHash> = []
    /// Groups that turned out to wait.
    var waiting: [OutboxGroup] = []
  }

  /// What is worked out once for all rounds.
  private struct Work {
    var uploads: [PlannedUpload] = []
    var encoded: [ContentHash: EncodedContent] = [:]
    var bases: DeltaBases
    private(set) var known: [VersionID: VersionRecord]
    private var readGroups: Set<Int64> = []
    private var notDownloaded: Set<VersionID>?

    init(_ known: [VersionID: VersionRecord], maximumDepth: Int) {
      (self.known, bases) = (known, DeltaBases(maximumDepth: maximumDepth))
    }

    /// Reads the records of a group's versions.
    mutating func read(_ group: OutboxGroup, in storage: some DeviceStorage) throws {
      guard readGroups.insert(group.id).inserted else { return }
      for id in group.versions where known[id] == nil { known[id] = try storage.version(id)?.record }
    }

    mutating func isNotDownloaded(_ id: VersionID, in storage: some DeviceStorage) throws -> Bool {
      let known = try notDownloaded ?? Set(storage.notDownloadedVersions())
      notDownloaded = known
      return known.contains(id)
    }
  }

  /// Works out what can be sent. Groups whose contents have to be uploaded first wait, and later ones that are
  /// unrelated don't; an offer of all that the store holds waits as a whole.
  mutating func plan(_ candidates: Candidates, in storage: some DeviceStorage) throws -> Outcome {
    var work = Work(candidates.known, maximumDepth: maximumDepth)
    var waiting = WaitingGroups()
    // Each round but the last finds at least one more group that waits.
    while true {
      // Thousands of versions may wait, of which an exchange takes the first ones: others may overtake only those that
      // have to wait.
      if !waiting.ids.isEmpty { for group in candidates.groups { try work.read(group, in: storage) } }
      let left = waiting.left(of: candidates.groups, work.known)
      let groups: [OutboxGroup]
      if let offer = candidates.offer {
        groups = waiting.ids.isEmpty ? offer : []
      } else {
        groups = try candidates.limits.fitting(left) { group in
          try work.read(group, in: storage)
          return group.size(work.known)
        }
      }
      var round = Round(
        plan: SendingPlan(storage.faults.splitsGroups ? Array(groups.prefix(1)) : groups, work.known),
        room: inlineBytes)
      for group in round.plan.groups {
        if let lost = try place(group, of: candidates, waiting, &round, &work, in: storage) {
          return .lost(lost.version, lost.hash)
        }
      }
      guard !round.waiting.isEmpty else {
        round.plan.uploads = work.uploads
        round.plan.isOfferWaiting = candidates.offer != nil && round.plan.groups.isEmpty
        return .plan(round.plan)
      }
      for group in round.waiting { waiting.insert(group, work.known) }
    }
  }

  /// Decides where the contents of a group go.
  ///
  /// - Returns: A content that is lost; nil if none is.
  private mutating func place(
    _ group: OutboxGroup, of candidates: Candidates, _ waiting: WaitingGroups, _ round: inout Round, _ work: inout Work,
    in storage: some DeviceStorage
  ) throws -> (version: VersionID, hash: ContentHash)? {
    var inside: [EncodedContent] = []
    var insideBytes = 0
    // With those that `own` below names.
    var uploading = candidates.uploading.union(work.uploads.map(\.hash))
    var waits = false
    for record in group.versions.compactMap({ work.known[$0] }) where round.plan.visible.contains(record.id) {
      // The version that replaces it is being uploaded, and is all that will be seen.
      let isReplaced = waiting.covers.contains(record.id)
      var own: [PlannedUpload] = []
      var length = 0
      for (index, hash) in record.contents.enumerated() where !round.placed.contains(hash) {
        // If they are lost there, the cloud says so.
        if candidates.arrived.contains(record.id), !full.contains(hash) { continue }
        if round.unplaced.contains(hash) {
          waits = true
          continue
        }
        guard try storage.cloudDepth(of: hash) == nil else { continue }
        guard try storage.hasContent(hash) else {
          // History needs no contents if the cloud knows what replaced it; if it doesn't, it will say so. Neither does
          // a version that isn't downloaded: its contents are in the cloud, or were.
          if try work.isNotDownloaded(record.id, in: storage) { continue }
          guard try storage.isCovered(record.id) else { return (record.id, hash) }
          waits = waits || isReplaced
          continue
        }
        switch try place(hash, index, of: record, room: round.room - insideBytes, uploading, &work, in: storage) {
        case .inside(let content):
          inside.append(content)
          insideBytes += content.bytes.count
          round.placed.insert(hash)
          continue
        case .upload(let upload):
          own.append(upload)
          uploading.insert(upload.hash)
        case .waits:
          break
        }
        round.unplaced.insert(hash)
        length += try storage.contentLength(hash) ?? 0
        waits = true
      }
      guard !isReplaced else {
        uploading.subtract(own.map(\.hash))
        continue
      }
      for index in own.indices { own[index].lengthInAll = length }
      work.uploads += own
    }
    if waits {
      round.waiting.append(group)
      round.placed.subtract(inside.map(\.hash))
    } else {
      round.room -= insideBytes
      round.plan.contents += inside
    }
    return nil
  }

  // MARK: Contents

  /// Where a content goes.
  private enum Placement {
    case inside(EncodedContent)
    case upload(PlannedUpload)
    /// It is being uploaded already, or is better started after something else has arrived.
    case waits
  }

  private mutating func place(
    _ hash: ContentHash, _ index: Int, of record: VersionRecord, room: Int, _ uploading: Set<ContentHash>,
    _ work: inout Work,
    in storage: some DeviceStorage
  ) throws -> Placement {
    if uploading.contains(hash) { return .waits }
    let length = try storage.contentLength(hash) ?? 0
    var upload = PlannedUpload(hash: hash, version: record, index: index, bytes: 0, depth: 0, length: length)
    if let known = large[hash] {
      if let other = known.waitsFor {
        if uploading.contains(other) { return .waits }
      } else if known.bytes > room {
        upload.bytes = known.bytes
        return .upload(upload)
      }
    }
    guard canEncode(length) else { return .waits }
    let base = try base(for: upload, uploading, &work.bases, in: storage)
    let content = try work.encoded[hash] ?? storage.encoded(hash, against: base.known?.hash)
    large[hash] = nil
    if content.bytes.count <= room {
      work.encoded[hash] = content
      return .inside(content)
    }
    hasEncodedLarge = hasEncodedLarge || length > Self.largeContentBytes
    // When the content that is being uploaded has arrived, this one is a delta of it, most likely a small one.
    let waitsFor = content.bytes.count > inlineBytes ? base.uploading : nil
    large[hash] = LargeContent(bytes: content.bytes.count, waitsFor: waitsFor)
    if waitsFor != nil { return .waits }
    upload.bytes = content.bytes.count
    upload.encode(as: content, base)
    return .upload(upload)
  }

  /// Encodes an upload whose size was known before.
  ///
  /// - Parameter upload: An upload whose content is here.
  /// - Returns: The upload with its content; nil if this step has no time left for it.
  mutating func encode(_ upload: PlannedUpload, in storage: some DeviceStorage) throws -> PlannedUpload? {
    guard upload.content == nil else { return upload }
    guard canEncode(upload.length) else { return nil }
    hasEncodedLarge = hasEncodedLarge || upload.length > Self.largeContentBytes
    var bases = DeltaBases(maximumDepth: maximumDepth)
    let base = try base(for: upload, [], &bases, in: storage)
    var upload = upload
    upload.encode(as: try storage.encoded(upload.hash, against: base.known?.hash), base)
    return upload
  }

  private func base(
    for upload: PlannedUpload, _ uploading: Set<ContentHash>, _ bases: inout DeltaBases, in storage: some DeviceStorage
  ) throws -> DeltaBases.Base {
    guard !full.contains(upload.hash) else { return DeltaBases.Base() }
    return try bases.base(for: upload.hash, at: upload.index, of: upload.version, uploading: uploading, in: storage)
  }

  /// Returns whether this step has time for a content of this length. Each step that has none has found out the size of
  /// another content, or begun its upload.
  private mutating func canEncode(_ length: Int) -> Bool {
    guard hasEncodedLarge, length > Self.largeContentBytes else { return true }
    hasPostponed = true
    return false
  }
}

extension PlannedUpload {
  fileprivate mutating func encode(as content: EncodedContent, _ base: DeltaBases.Base) {
    self.content = content
    depth = content.base == nil ? 0 : (base.known?.depth ?? 0) + 1
  }
}
