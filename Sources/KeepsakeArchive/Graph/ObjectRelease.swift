extension ReaderCore {
  /// How often unreferenced objects are searched. A second round finds objects that were held only by references that
  /// are not in the archive's bytes, because the game's own code set them. It is unlikely that all of these form one
  /// long chain.
  private static let releaseRounds = 8

  /// Releases the objects that nothing else retains, in an order that can't overflow the stack.
  ///
  /// Swift releases what an object refers to inside the object's own release. After an error, or if the root doesn't
  /// lead to all objects (because the program dropped a field), a chain of a million of them would be released
  /// recursively. So objects that nothing else retains are released first, then those that only they retained, and so
  /// on. If the root leads to every object, as is normal, this costs one check of each object's reference count.
  func releaseObjects(of file: ArchiveFile) {
    unowned = []
    objects.withMemoryRebound(to: AnyObject?.self) { objects in
      guard objects.indices.contains(where: { isKnownUniquelyReferenced(&objects[$0]) }) else { return }
      // The targets found here may be more than an object really refers to: the reference counts decide.
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
