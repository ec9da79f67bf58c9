/// Collections. Their contents are references, or values stored in place.
extension FoundationClass {
  static let array = FoundationClass(
    names: ["NSArray", "NSMutableArray"],
    read: { object in elements(object).map { .list($0) } },
    write: { content, _ in
      if case .list(let elements) = content { [.init("NS.objects", .array(elements))] } else { nil }
    })

  static let set = FoundationClass(
    names: ["NSSet", "NSMutableSet"],
    read: { object in elements(object).map { .set($0) } },
    write: { content, _ in if case .set(let elements) = content { [.init("NS.objects", .array(elements))] } else { nil }
    })

  static let orderedSet = FoundationClass(
    names: ["NSOrderedSet", "NSMutableOrderedSet"],
    read: { object in .list(object["NS.objects"]?.array ?? object.numbered("NS.object.")) })

  static let dictionary = FoundationClass(
    names: ["NSDictionary", "NSMutableDictionary"],
    read: { object in
      guard let keys = object["NS.keys"]?.array, let values = object["NS.objects"]?.array else { return pairs(object) }
      guard keys.count == values.count else {
        throw PropertyListError(
          .damaged, "A dictionary has \(keys.count) keys and \(values.count) values: the file was altered")
      }
      return .pairs(keys: keys, values: values)
    },
    write: { content, _ in
      if case .pairs(let keys, let values) = content {
        [.init("NS.keys", .array(keys)), .init("NS.objects", .array(values))]
      } else {
        nil
      }
    })

  /// A set with the number of times that each element is in it.
  static let countedSet = FoundationClass(
    names: ["NSCountedSet"],
    read: { object in
      let byKey = PropertyList.index(object.list.dictionary ?? [])
      guard let count = byKey["NS.count"]?.integer, count >= 0, count < byKey.count else { return nil }
      let pairs = (0..<count).compactMap { index in
        byKey["NS.object\(index)"].flatMap { element in byKey["NS.count\(index)"].map { (element, $0) } }
      }
      return pairs.count == count ? .pairs(keys: pairs.map(\.0), values: pairs.map(\.1)) : nil
    })

  /// Returns nil for an object that also has other fields.
  private static func elements(_ object: FoundationObject) -> [PropertyList]? {
    if let elements = object["NS.objects"]?.array { return elements }
    let elements = object.numbered("NS.object.")
    return elements.count + 1 == object.list.dictionary?.count ? elements : nil
  }

  /// Returns the pairs of a dictionary from a subclass of Foundation's archiver, which has `NS.key.0` as well. The
  /// class is one of the entries.
  private static func pairs(_ object: FoundationObject) -> KeyedContent? {
    let (keys, values) = (object.numbered("NS.key."), object.numbered("NS.object."))
    guard keys.count == values.count, 2 * keys.count + 1 == object.list.dictionary?.count else { return nil }
    return .pairs(keys: keys, values: values)
  }
}
