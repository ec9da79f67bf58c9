extension ArchiveReader {
  /// Called by generated code for each object that a value refers to without owning it.
  ///
  /// - Parameter object: The object; nil for none.
  public func noteUnowned(_ object: AnyObject?) {
    guard let object, core.unowned.last !== object else { return }
    if let record = core.record { record.noteUnowned(object) } else { core.unowned.append(object) }
  }
}

extension ReaderCore {
  var hasUnowned: Bool { !unowned.isEmpty || record?.unowned.isEmpty == false }

  /// Calls `release`, which releases the objects that only the reader retains, and throws if one of them has an unowned
  /// reference to it. Otherwise the program would trap at the first use of such a reference. Where references are
  /// recorded, it is known which object has the unowned one; if that is released, too, nothing can use it.
  func checkUnowned(release: () -> Void) throws {
    var unowned = self.unowned.map { Held(object: $0, type: "\(type(of: $0))", isByRoot: true) }
    for entry in record?.takeUnowned() ?? [] {
      let isByRoot = entry.holder == ReferenceRecord.root
      // The initialiser of an object that doesn't exist has failed.
      guard let holder = isByRoot ? entry.object : object(entry.holder)?.takeUnretainedValue() else { continue }
      unowned.append(Held(object: entry.object, type: "\(type(of: entry.object))", holder: holder, isByRoot: isByRoot))
    }
    release()
    for held in unowned where held.object == nil && (held.isByRoot || held.holder != nil) {
      throw ArchiveError(
        .unbuildable, "An unowned reference points to an object that nothing in the save owns", type: held.type)
    }
  }

  private struct Held {
    weak var object: AnyObject?
    let type: String
    weak var holder: AnyObject?
    /// Whether the root refers to the object, or it isn't known what does.
    let isByRoot: Bool
  }
}
