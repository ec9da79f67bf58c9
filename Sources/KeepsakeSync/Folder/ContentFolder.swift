import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The contents of a folder: checks whether they are complete, and stores new ones.
///
/// Used by one caller at a time. What was verified is remembered as long as a file's size, dates and inode stay the
/// same.
final class ContentFolder {
  private let layout: FolderLayout
  private let access: any FolderAccess
  private var verified: [ContentHash: (signature: FolderSignature, head: ContentFile.Head)] = [:]
  /// What was stored here.
  private var stored: [ContentHash: ContentFile.Head] = [:]
  /// Files that failed verification, with their signatures at that time.
  private var broken: [ContentHash: FolderSignature] = [:]

  init(_ layout: FolderLayout, by access: any FolderAccess) { (self.layout, self.access) = (layout, access) }

  /// What is known of a content, with those that it builds on.
  enum Presence {
    case complete
    /// Nothing is known to be wrong with it, and a part of it isn't on this device at present.
    case arriving
    /// A part of it is missing or damaged.
    case missing
  }

  /// Returns whether a content can be decoded from what is here: its own file, and those of its bases, are intact.
  /// Reads each file once, and asks for what is arriving.
  func isComplete(_ hash: ContentHash) throws(TransportFailure) -> Bool {
    let presence = try follow(hash) { hash throws(TransportFailure) in
      let head = try self.verifiedHead(hash)
      if head == nil, try self.away(hash) == .bytes { self.access.fetch(self.layout.content(hash)) }
      return head
    }
    return presence == .complete
  }

  /// Returns whether the cloud has a content: it is complete, or was found or stored here and is out of this device's
  /// reach at present. Asks for nothing.
  func holds(_ hash: ContentHash) throws(TransportFailure) -> Bool {
    let presence = try follow(hash) { hash throws(TransportFailure) in
      if let head = try self.verifiedHead(hash) { return head }
      // Without its name it may have been removed since.
      return try self.away(hash) == .bytes ? self.knownHead(hash) : nil
    }
    return presence == .complete
  }

  /// Does the same as `isComplete` by names, heads and sizes alone, without reading the frames: this detects files that
  /// a sync program left out or truncated. Asks for nothing.
  func glance(_ hash: ContentHash) throws(TransportFailure) -> Presence {
    try follow(hash) { hash throws(TransportFailure) in try self.head(hash) }
  }

  /// What isn't on this device of a content.
  private enum Away {
    case bytes, name
  }

  private func away(_ hash: ContentHash) throws(TransportFailure) -> Away? {
    switch try access.item(at: layout.content(hash)) {
    case .arriving?: .bytes
    case .unlisted?: .name
    case .file?, .folder?, .other?, nil: nil
    }
  }

  /// What was known of a content before the system took its bytes away.
  private func knownHead(_ hash: ContentHash) -> ContentFile.Head? { verified[hash]?.head ?? stored[hash] }

  private func follow(
    _ hash: ContentHash, _ look: (ContentHash) throws(TransportFailure) -> ContentFile.Head?
  ) throws(TransportFailure) -> Presence {
    var next = hash
    // This also ends if the bases form a cycle.
    for _ in 0...FolderLimits.contentChain {
      guard let head = try look(next) else { return try away(next) == nil ? .missing : .arriving }
      guard let base = head.base else { return .complete }
      next = base
    }
    return .missing
  }

  private func head(_ hash: ContentHash) throws(TransportFailure) -> ContentFile.Head? {
    let path = layout.content(hash)
    guard let signature = try access.signature(of: path) else { return nil }
    if let known = verified[hash], known.signature == signature { return known.head }
    guard let start = try access.read(path, limit: FolderLimits.contentHeadBytes, isPrefix: true),
      let head = ContentFile.head(of: start), head.hash == hash, head.fileBytes == signature.size
    else { return nil }
    return head
  }

  private func verifiedHead(_ hash: ContentHash) throws(TransportFailure) -> ContentFile.Head? {
    guard let signature = try access.signature(of: layout.content(hash)) else { return nil }
    if let known = verified[hash], known.signature == signature { return known.head }
    if broken[hash] == signature { return nil }
    // One that can't be read mustn't keep the others away.
    return try? content(hash) == nil ? nil : verified[hash]?.head
  }

  /// Returns a content as it is stored here; nil if it isn't here, or not intact.
  func content(_ hash: ContentHash) throws(TransportFailure) -> EncodedContent? {
    let path = layout.content(hash)
    guard let signature = try access.signature(of: path) else {
      // The file exists and isn't on this device yet. The caller tries again later.
      if try away(hash) != nil {
        access.fetch(path)
        throw TransportFailure.stillArriving(layout.root)
      }
      return nil
    }
    verified[hash] = nil
    broken[hash] = nil
    let bytes = try access.read(path, limit: ContentFile.maximumBytes)
    // It went while it was looked at, and may be back at once.
    if bytes == nil, signature.size <= ContentFile.maximumBytes { return nil }
    guard let bytes, let content = ContentFile.decoded(bytes), content.hash == hash,
      let head = ContentFile.head(of: bytes)
    else {
      broken[hash] = signature
      return nil
    }
    // The signature was taken before reading: after a change meanwhile it differs, and the file is checked again.
    verified[hash] = (signature, head)
    return content
  }

  /// Returns the size of the file without opening it; nil if there is none.
  func fileSize(_ hash: ContentHash) throws(TransportFailure) -> Int64? {
    try access.signature(of: layout.content(hash))?.size
  }

  /// Stores a content durably. A content that the cloud has stays as it is.
  ///
  /// - Throws: `rejected` if its base isn't here: the sender has to send it in full.
  func put(_ content: EncodedContent) throws {
    if try holds(content.hash) { return }
    if try away(content.hash) == .name { throw TransportFailure.stillArriving(layout.contentFolder(content.hash)) }
    if let base = content.base, try !holds(base) {
      throw TransportFailure(.rejected, "the base \(base) of the content \(content.hash) isn't in the folder")
    }
    guard content.bytes.count <= SyncLimits.contentBytes,
      (0...ExchangeRules.maximumContentBytes).contains(content.length)
    else {
      throw TransportFailure(.rejected, "a content may take at most \(ExchangeRules.maximumContentBytes) bytes")
    }
    try access.makeFolder(layout.contents)
    try access.makeFolder(layout.contentFolder(content.hash))
    let file = ContentFile.encoded(content)
    try access.write(file, to: layout.content(content.hash))
    stored[content.hash] = ContentFile.head(of: file)
  }

  /// Removes every content that is older than `milliseconds` and neither in `kept` nor a base of one that is. Also
  /// removes the files that killed processes left behind.
  func collect(keeping kept: Set<ContentHash>, changedBefore milliseconds: Int64, partialsBefore: Int64) throws {
    var needed = kept
    for hash in kept {
      var next: ContentHash? = hash
      while let hash = next {
        // What it builds on is unknown until it is here: another device may have stored it anew.
        if try away(hash) != nil { return }
        let head = try head(hash)
        next = head?.base.flatMap { needed.insert($0).inserted ? $0 : nil }
      }
    }
    for folder in try access.names(in: layout.contents) ?? [] where folder.utf8.count == 2 {
      // A link that somebody put here must not lead out of the folder.
      let path = "\(layout.contents)/\(folder)"
      guard case .folder? = try access.item(at: path) else { continue }
      for name in try access.names(in: path) ?? [] {
        guard let signature = try access.signature(of: "\(path)/\(name)") else { continue }
        if FolderCloud.isPartial(name) {
          if signature.modifiedMilliseconds < partialsBefore { try access.remove("\(path)/\(name)") }
        } else if let hash = ContentHash(name), !needed.contains(hash), signature.modifiedMilliseconds < milliseconds {
          (verified[hash], stored[hash]) = (nil, nil)
          try access.remove("\(path)/\(name)")
        }
      }
    }
  }
}
