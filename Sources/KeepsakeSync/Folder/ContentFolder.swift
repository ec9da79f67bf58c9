import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The contents of a folder: whether they are there as a whole, and how they get there.
///
/// Used from one place at a time, and remembers what it has verified for as long as a file's size, dates and inode stay the same.
final class ContentFolder {
  private let layout: FolderLayout
  private var verified: [ContentHash: (signature: FolderSignature, head: ContentFile.Head)] = [:]
  /// Files that don't verify, as they were when that was found.
  private var broken: [ContentHash: FolderSignature] = [:]

  init(_ layout: FolderLayout) { self.layout = layout }

  /// Whether a content can be decoded from what is here: its own file, and those of its bases, are whole. Reads each file once.
  func isComplete(_ hash: ContentHash) throws(TransportFailure) -> Bool {
    try follow(hash) { hash throws(TransportFailure) in try self.verifiedHead(hash) }
  }

  /// The same by names, heads and sizes alone, without reading the frames: what a sync program left out or cut shows.
  func seemsComplete(_ hash: ContentHash) throws(TransportFailure) -> Bool {
    try follow(hash) { hash throws(TransportFailure) in try self.head(hash) }
  }

  private func follow(
    _ hash: ContentHash, _ look: (ContentHash) throws(TransportFailure) -> ContentFile.Head?
  ) throws(TransportFailure) -> Bool {
    var next = hash
    // Bases in a circle end here, too.
    for _ in 0...FolderLimits.contentChain {
      guard let head = try look(next) else { return false }
      guard let base = head.base else { return true }
      next = base
    }
    return false
  }

  private func head(_ hash: ContentHash) throws(TransportFailure) -> ContentFile.Head? {
    let path = layout.content(hash)
    guard let signature = try FolderFiles.signature(of: path) else { return nil }
    if let known = verified[hash], known.signature == signature { return known.head }
    guard let start = try FolderFiles.read(path, limit: FolderLimits.contentHeadBytes, isPrefix: true),
      let head = ContentFile.head(of: start), head.hash == hash, head.fileBytes == signature.size
    else { return nil }
    return head
  }

  private func verifiedHead(_ hash: ContentHash) throws(TransportFailure) -> ContentFile.Head? {
    guard let signature = try FolderFiles.signature(of: layout.content(hash)) else { return nil }
    if let known = verified[hash], known.signature == signature { return known.head }
    if broken[hash] == signature { return nil }
    _ = try content(hash)
    return verified[hash]?.head
  }

  /// A content as it lies here; nil if it isn't here, or not as a whole.
  func content(_ hash: ContentHash) throws(TransportFailure) -> EncodedContent? {
    let path = layout.content(hash)
    verified[hash] = nil
    broken[hash] = nil
    guard let signature = try FolderFiles.signature(of: path) else { return nil }
    guard let bytes = try FolderFiles.read(path, limit: ContentFile.maximumBytes), let content = ContentFile.decoded(bytes),
      content.hash == hash,
      let head = ContentFile.head(of: bytes)
    else {
      broken[hash] = signature
      return nil
    }
    // Taken before the reading: a change meanwhile has another signature, and is looked at again.
    verified[hash] = (signature, head)
    return content
  }

  /// Bytes of the file, without opening it; nil if there is none.
  func fileSize(_ hash: ContentHash) throws(TransportFailure) -> Int64? {
    try FolderFiles.signature(of: layout.content(hash))?.size
  }

  /// Keeps a content durably. What is here and can be decoded stays as it is.
  ///
  /// Throws `rejected` if its base isn't here: whoever sends it has to send it whole.
  func put(_ content: EncodedContent) throws {
    if try isComplete(content.hash) { return }
    if let base = content.base, try !isComplete(base) {
      throw TransportFailure(.rejected, "the base \(base) of the content \(content.hash) isn't in the folder")
    }
    guard content.bytes.count <= SyncLimits.contentBytes, (0...ExchangeRules.maximumContentBytes).contains(content.length) else {
      throw TransportFailure(.rejected, "a content may take \(ExchangeRules.maximumContentBytes) bytes")
    }
    if try FolderFiles.makeFolder(layout.contents) { try AtomicFile.syncFolder(layout.root) }
    if try FolderFiles.makeFolder(layout.contentFolder(content.hash)) { try AtomicFile.syncFolder(layout.contents) }
    try AtomicFile.write(ContentFile.encoded(content), to: URL(fileURLWithPath: layout.content(content.hash)))
  }

  /// Removes every content that `kept` and their bases don't name and that is older than `milliseconds`, and what killed processes left.
  func collect(keeping kept: Set<ContentHash>, changedBefore milliseconds: Int64, partialsBefore: Int64) throws {
    var needed = kept
    for hash in kept {
      var next = try head(hash)?.base
      while let base = next, needed.insert(base).inserted { next = try head(base)?.base }
    }
    for folder in try FolderFiles.names(in: layout.contents) ?? [] where folder.utf8.count == 2 {
      // A link that somebody put here must not lead out of the folder.
      let path = "\(layout.contents)/\(folder)"
      guard case .folder? = try FolderFiles.kind(of: path) else { continue }
      for name in try FolderFiles.names(in: path) ?? [] {
        guard let signature = try FolderFiles.signature(of: "\(path)/\(name)") else { continue }
        if FolderCloud.isPartial(name) {
          if signature.modifiedMilliseconds < partialsBefore { try FolderFiles.remove("\(path)/\(name)") }
        } else if let hash = ContentHash(name), !needed.contains(hash), signature.modifiedMilliseconds < milliseconds {
          verified[hash] = nil
          try FolderFiles.remove("\(path)/\(name)")
        }
      }
    }
  }
}
