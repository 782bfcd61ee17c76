Feature: Client address
  Whose attempt it is, said by the connection or by a trusted proxy.

  @PROXY-1 @MUST
  Rule: Who is no trusted proxy gains nothing by naming others

    Scenario Outline: <header> from anybody
      Given an emptied address
      When attempts come from there with a new client in <header> each time
      Then each was held to that client's pool

      Examples:
        | header          |
        | X-Forwarded-For |
        | X-Real-IP       |
        | Forwarded       |
        | any look-alike  |

  @PROXY-2 @MUST @needs-proxy
  Rule: The first address from the right that is not trusted is the client

    Scenario Outline: the same client, by <chain>
      Given an emptied client
      When attempts come for that client with <chain>
      Then each was held to that client's pool

      Examples:
        | chain                    |
        | its address alone        |
        | a trusted hop behind it  |

    Scenario Outline: other clients, by <chain>
      Given an emptied client
      When attempts come for other clients with <chain>
      Then each had a pool of its own

      Examples:
        | chain                    |
        | its address alone        |
        | a trusted hop behind it  |

    Scenario Outline: an address <almost> a trusted one
      Given an emptied client <almost> a trusted proxy
      When attempts come for that client with a forged entry before it
      Then each was held to that client's pool

      Examples:
        | almost       |
        | next to      |
        | spelled like |

  @PROXY-3 @MUST @needs-proxy
  Rule: A forged leftmost entry changes nothing

    Scenario: a new one each time
      Given an emptied client
      When attempts come for that client with a forged entry before it
      Then each was held to that client's pool

    Scenario: the same one for other clients
      Given an emptied client
      When attempts come for other clients with that client before them
      Then each had a pool of its own

  @PROXY-4 @DECIDED @needs-proxy
  Rule: However an address is spelled, it is the same one

    Scenario Outline: the same client, by <spelling>
      Given an emptied client
      When attempts come for that client with <spelling>
      Then each was held to that client's pool

      Examples:
        | spelling                         |
        | a line of its own                |
        | a line before that of a hop      |
        | spaces around it                 |
        | a port                           |
        | quotes                           |
        | an IPv4-mapped form              |
        | an entry that is none behind it  |
        | empty entries behind it          |

    Scenario Outline: other clients, by <spelling>
      Given an emptied client
      When attempts come for other clients with <spelling>
      Then each had a pool of its own

      Examples:
        | spelling                         |
        | a line of its own                |
        | a line before that of a hop      |
        | spaces around it                 |
        | a port                           |
        | an IPv4-mapped form              |
        | an entry that is none behind it  |

    Scenario Outline: the same client with an IPv6 address, by <spelling>
      Given an emptied client with an IPv6 address
      When attempts come for that client with <spelling>
      Then each was held to that client's pool

      Examples:
        | spelling             |
        | brackets and a port  |
        | a zone               |

  @PROXY-5 @DECIDED @needs-proxy
  Rule: One header is believed, and where it names nobody, the proxy is the client

    Scenario: other headers beside it
      Given an emptied client
      When attempts come for that client with another client in the other headers
      Then each was held to that client's pool

    Scenario: nobody is named
      Given an emptied proxy
      When attempts come from it that name nobody
      Then each was held to that client's pool
