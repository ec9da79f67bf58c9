extension ReaderCore {
  /// A second round finds what only references led to that no byte tells of, because a game's own code set them. That they are
  /// all part of one long chain is not to be expected.
  private static let releaseRounds = 8

  /// Lets go of the objects that nobody else holds, in an order that can't overflow the stack.
  ///
  /// Swift releases what an object refers to inside of the object's own release. After an error, and where the root doesn't
  /// lead to all objects (the program dropped a field), a chain of a million of them would be released from within each other.
  /// So those that nobody else holds are released first, then what only they held, and so on. Where the root leads to every object, as
  /// it does as a rule, this costs one look at each object's reference count.
  func releaseObjects(of file: ArchiveFile) {
    unowned = []
    objects.withMemoryRebound(to: AnyObject?.self) { objects in
      guard objects.indices.contains(where: { isKnownUniquelyReferenced(&objects[$0]) }) else { return }
      // What is collected here may be more than an object really refers to: reference counts have the last word.
      let places = ObjectLocations.withTargets(file, self)
      for _ in 0..<Self.releaseRounds {
        var loose = objects.indices.filter { isKnownUniquelyReferenced(&objects[$0]) }
        if loose.isEmpty { return }
        while let id = loose.popLast() {
          objects[id] = nil
          places.forEachTarget(of: id) { target in
            if isKnownUniquelyReferenced(&objects[target]) { loose.append(target) }
          }
        }
      }
    }
  }
}
