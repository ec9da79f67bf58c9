extension ArchiveReader {
  /// Called by generated code for each object that a value refers to without owning it.
  ///
  /// - Parameter object: The object; nil for none.
  public func noteUnowned(_ object: AnyObject?) {
    guard let object, core.unowned.last !== object else { return }
    core.unowned.append(object)
  }
}

extension ReaderCore {
  /// Calls `release`, which releases the objects that only the reader retains, and throws if one of them has an unowned
  /// reference to it. Otherwise the program would trap at the first use of such a reference.
  func checkUnowned(release: () -> Void) throws {
    let unowned = self.unowned.map { Held(object: $0, type: "\(type(of: $0))") }
    release()
    for held in unowned where held.object == nil {
      throw ArchiveError(
        .unbuildable, "An unowned reference points to an object that nothing in the save owns", type: held.type)
    }
  }

  private struct Held {
    weak var object: AnyObject?
    let type: String
  }
}
