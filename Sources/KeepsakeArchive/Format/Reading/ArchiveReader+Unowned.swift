extension ArchiveReader {
  /// Called by generated code with each object that a value now refers to without owning it.
  public func noteUnowned(_ object: AnyObject?) {
    guard let object, core.unowned.last !== object else { return }
    core.unowned.append(object)
  }
}

extension ReaderCore {
  /// Lets go of the objects that only the reader holds, by `release`, and checks that those which are referred to without being owned are not among
  /// them. Otherwise the program would trap where it first uses such a reference.
  func checkUnowned(release: () -> Void) throws {
    let unowned = self.unowned.map { Held(object: $0, type: "\(type(of: $0))") }
    release()
    for held in unowned where held.object == nil {
      throw ArchiveError(
        .unbuildable, "An unowned reference leads to an object that nothing in the save owns", type: held.type)
    }
  }

  private struct Held {
    weak var object: AnyObject?
    let type: String
  }
}
